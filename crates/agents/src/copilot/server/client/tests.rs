use super::super::fake::{FakeServer, Response, greeting};
use super::*;

const SHORT: Duration = Duration::from_millis(300);

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The fault of connecting to a server that responds like this to the first call.
fn refused(first: impl Fn() -> Response + Send + Sync + 'static, token: Option<&str>) -> (Fault, SocketAddr) {
    run(async {
        let fake = FakeServer::start(move |_, _, _| first()).await;
        let endpoint = token.map_or_else(|| fake.endpoint.clone(), |token| fake.with_token(token));
        (ServerClient::open(&endpoint, Path::new("")).await.unwrap_err(), endpoint.address)
    })
}

#[test]
fn a_server_that_never_responds_is_given_up() {
    run(async {
        let fake = FakeServer::start(|_, _, _| Response::Nothing).await;
        let fault = ServerClient::open_within(&fake.endpoint, Path::new(""), SHORT).await.unwrap_err();
        assert_eq!(fault, Fault::Silent { place: Place::At(fake.endpoint.address), seconds: 0 });
    });
}

#[test]
fn other_protocols_are_recognised() {
    let payloads: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"Content-Length: 5\r\n\r\n{]}[!",
        b"\x00\xff\xfe\x00",
    ];
    for bytes in payloads {
        let (fault, address) = refused(move || Response::Raw(bytes.to_vec()), None);
        assert_eq!(fault, Fault::NotCopilot(Place::At(address)), "{:?}", String::from_utf8_lossy(bytes));
    }
    let (fault, address) = refused(|| Response::Error(-32601, "no such method"), None);
    assert_eq!(fault, Fault::NotCopilot(Place::At(address)));
    let (fault, address) = refused(|| Response::Result(json!({"hello": 1})), None);
    assert_eq!(fault, Fault::NotCopilot(Place::At(address)));
}

#[test]
fn a_frame_of_4_gb_is_not_waited_for() {
    let (fault, address) =
        refused(|| Response::Raw(format!("Content-Length: {}\r\n\r\n{{", 4_u64 << 30).into_bytes()), None);
    assert_eq!(fault, Fault::TooLong(Place::At(address)));
}

#[test]
fn a_flood_before_the_handshake_is_rejected() {
    let call = br#"{"jsonrpc":"2.0","id":7,"method":"x"}"#;
    let frame = [format!("Content-Length: {}\r\n\r\n", call.len()).as_bytes(), call].concat();
    let (fault, address) = refused(move || Response::Raw(frame.repeat(50_000)), None);
    assert_eq!(fault, Fault::TooLong(Place::At(address)));
}

#[test]
fn a_server_that_closes_is_gone() {
    let (fault, address) = refused(|| Response::Close, None);
    assert_eq!(fault, Fault::Gone(Place::At(address)));
}

#[test]
fn a_token_is_wrong_missing_or_unexpected_and_never_shown() {
    let at = |(fault, address): (Fault, SocketAddr)| {
        assert!(!format!("{fault} {fault:?}").contains("hunter2"), "{fault}");
        (fault, Place::At(address))
    };
    let (fault, place) = at(refused(|| Response::Error(-32002, "AUTHENTICATION_FAILED hunter2"), Some("hunter2")));
    assert_eq!(fault, Fault::WrongToken(place));
    let (fault, place) = at(refused(|| Response::Error(-32002, "AUTHENTICATION_FAILED"), None));
    assert_eq!(fault, Fault::TokenNeeded(place));
    let (fault, place) = at(refused(|| Response::Error(-32003, "AUTHENTICATION_NOT_CONFIGURED"), Some("hunter2")));
    assert_eq!(fault, Fault::TokenUnexpected(place));
    let (fault, place) = at(refused(|| Response::Error(-1, "what is hunter2?"), Some("hunter2")));
    assert_eq!(fault, Fault::NotCopilot(place));
}

#[test]
fn another_protocol_version_is_reported() {
    let (fault, address) = refused(|| Response::Result(json!({"ok": true, "protocolVersion": 99})), None);
    assert_eq!(fault, Fault::Protocol(Place::At(address), 99));
    assert!(fault.to_string().contains("version 99"), "{fault}");
}

#[test]
fn a_closed_port_is_reported_and_other_machines_are_refused() {
    run(async {
        // Bound, so that no other test listens there, but not listening.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        let open = |address| async move {
            ServerClient::open_within(&Endpoint { address, token: None }, Path::new(""), CALL_TIMEOUT)
                .await
                .unwrap_err()
        };
        assert_eq!(open(address).await, Fault::Refused(address));
        for other in ["192.0.2.1:80", "0.0.0.0:80", "[2001:db8::1]:80"] {
            let address = other.parse().unwrap();
            assert_eq!(open(address).await, Fault::NotLocal(address));
        }
    });
}

/// The fault of a call to a server that responds like this.
fn failed(span: Duration, respond: impl Fn() -> Response + Send + Sync + 'static) -> Fault {
    run(async {
        let fake =
            FakeServer::start(move |method, _, _| if method == "connect" { greeting() } else { respond() }).await;
        let link = ServerClient::open(&fake.endpoint, Path::new("")).await.unwrap();
        link.call_within(span, "session.abort", json!({})).await.unwrap_err()
    })
}

#[test]
fn every_call_has_a_deadline_and_a_precise_fault() {
    assert!(matches!(failed(SHORT, || Response::Nothing), Fault::Silent { .. }));
    assert!(matches!(failed(CALL_TIMEOUT, || Response::Close), Fault::Gone(_)));
    assert!(matches!(failed(CALL_TIMEOUT, || Response::Raw(b"garbage\r\n\r\n".to_vec())), Fault::NotCopilot(_)));
    assert!(matches!(
        failed(CALL_TIMEOUT, || Response::Error(-32601, "no such method")),
        Fault::Unknown(_, "session.abort")
    ));
    assert!(matches!(
        failed(CALL_TIMEOUT, || Response::Error(
            -32603,
            "Request failed with message: Session not found for sessionId: x"
        )),
        Fault::NotLoaded(_)
    ));
    let Fault::Rejected(_, message) =
        failed(CALL_TIMEOUT, || Response::Error(-32603, "cannot run \"rm -rf \\\" /home\" now\u{1b}[2J\n`ls`."))
    else {
        panic!("not rejected");
    };
    assert_eq!(&*message, "cannot run … now [2J ….", "quoted parts may be the session's");
}

#[test]
fn a_session_is_joined_only_in_its_owners_server() {
    let terminal = || {
        let joined = std::sync::atomic::AtomicBool::new(false);
        move |method: &str, params: &Value, _: usize| match method {
            "connect" => greeting(),
            "session.resume" => {
                assert_eq!((&params["disableResume"], &params["sessionId"]), (&json!(true), &json!("s")));
                joined.store(true, std::sync::atomic::Ordering::SeqCst);
                Response::Result(json!({}))
            }
            _ if !joined.load(std::sync::atomic::Ordering::SeqCst) => Response::Error(-32603, "Session not found"),
            _ => Response::Result(json!({"abortable": true, "hasActiveWork": true})),
        }
    };
    run(async {
        let fake = FakeServer::start(terminal()).await;
        let link = ServerClient::open(&fake.endpoint, Path::new("")).await.unwrap();
        assert!(matches!(link.reach("s", false).await, Err(Fault::NotLoaded(_))));
        assert_eq!(fake.called("session.resume"), 0);
        for _ in 0..2 {
            assert!(link.reach("s", true).await.unwrap().has_active_work);
        }
        assert_eq!(fake.called("session.resume"), 1, "joined once");
    });
}

/// Quoted parts may be a prompt or a command, and server messages are logged.
#[test]
fn quoted_parts_of_a_server_message_are_left_out() {
    for (message, expected) in [
        ("plain words, and can't", "plain words, and can't"),
        ("bad \"rm -rf /\" here", "bad … here"),
        ("bad `rm \"x\"` here", "bad … here"),
        ("bad 'rm -rf /', it isn't", "bad …, it isn't"),
        ("open('/home/dev/secret')", "open(…)"),
        ("bad “rm” and ‘ls’", "bad … and …"),
        ("an escape \"a\\\"b\" ends", "an escape … ends"),
        ("never ends \"rm -rf", "never ends …"),
        ("a\nb\u{1b}[31m", "a b [31m"),
    ] {
        assert_eq!(&*server_message(message), expected, "{message:?}");
    }
    assert_eq!(server_message(&"x".repeat(10_000)).chars().count(), MESSAGE_MAX);
}

/// However a connection fails, even when the caller drops a pending call, no task is left, and so no buffer.
#[test]
fn a_failed_connection_leaves_nothing_behind() {
    const TIMES: usize = 200;
    const AT_ONCE: usize = 20;
    /// The responses to the first and the second call, and whether the caller drops the second.
    type Scenario = (&'static str, fn() -> Response, fn() -> Response, bool);
    let babble = || Response::Raw(b"garbage\r\n\r\n".to_vec());
    let scenarios: [Scenario; 8] = [
        ("never answers", || Response::Nothing, || Response::Nothing, false),
        ("closes", || Response::Close, || Response::Nothing, false),
        ("babbles", babble, || Response::Nothing, false),
        ("wants a token", || Response::Error(-32002, "AUTHENTICATION_FAILED"), || Response::Nothing, false),
        ("is no Copilot", || Response::Result(json!({})), || Response::Nothing, false),
        ("refuses a call", greeting, || Response::Error(-32603, "no"), false),
        ("closes at a call", greeting, || Response::Close, false),
        ("never answers a call that is dropped", greeting, || Response::Nothing, true),
    ];
    run(async {
        let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        for (name, first, then, given_up) in scenarios {
            let fake = FakeServer::start(move |method, _, _| if method == "connect" { first() } else { then() }).await;
            let before = alive();
            for _ in 0..TIMES / AT_ONCE {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..AT_ONCE {
                    let endpoint = fake.endpoint.clone();
                    all.spawn(async move {
                        let Ok(link) = ServerClient::open_within(&endpoint, Path::new(""), SHORT).await else { return };
                        let call = link.activity("s");
                        if given_up {
                            assert!(timeout(SHORT / 10, call).await.is_err(), "{name}");
                        } else {
                            call.await.unwrap_err();
                        }
                    });
                }
                all.join_all().await;
            }
            let ended = async {
                while alive() > before {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            let ended = timeout(Duration::from_secs(20), ended).await;
            assert!(
                ended.is_ok(),
                "a server that {name}: {} tasks are left after {TIMES} connections",
                alive() - before
            );
        }
    });
}
