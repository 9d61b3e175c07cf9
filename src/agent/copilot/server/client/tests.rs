use super::super::fake::{Fake, Say, greeting};
use super::*;

const SHORT: Duration = Duration::from_millis(300);

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// How connecting to a server fails that does this about the first call.
fn refused(first: impl Fn() -> Say + Send + Sync + 'static, token: Option<&str>) -> (Fault, SocketAddr) {
    run(async {
        let fake = Fake::start(move |_, _, _| first()).await;
        let endpoint = token.map_or_else(|| fake.endpoint.clone(), |token| fake.with_token(token));
        (Link::open(&endpoint, Path::new("")).await.unwrap_err(), endpoint.address)
    })
}

#[test]
fn a_server_that_never_answers_is_left() {
    run(async {
        let fake = Fake::start(|_, _, _| Say::Nothing).await;
        let fault = Link::open_within(&fake.endpoint, Path::new(""), SHORT).await.unwrap_err();
        assert_eq!(fault, Fault::Silent { place: Place::At(fake.endpoint.address), seconds: 0 });
    });
}

#[test]
fn whatever_speaks_something_else_is_told_so() {
    let said: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"Content-Length: 5\r\n\r\n{]}[!",
        b"\x00\xff\xfe\x00",
    ];
    for said in said {
        let (fault, address) = refused(move || Say::Raw(said.to_vec()), None);
        assert_eq!(fault, Fault::NotCopilot(Place::At(address)), "{:?}", String::from_utf8_lossy(said));
    }
    let (fault, address) = refused(|| Say::Error(-32601, "no such method"), None);
    assert_eq!(fault, Fault::NotCopilot(Place::At(address)));
    let (fault, address) = refused(|| Say::Answer(json!({"hello": 1})), None);
    assert_eq!(fault, Fault::NotCopilot(Place::At(address)));
}

#[test]
fn a_frame_of_4_gb_is_not_waited_for() {
    let (fault, address) =
        refused(|| Say::Raw(format!("Content-Length: {}\r\n\r\n{{", 4_u64 << 30).into_bytes()), None);
    assert_eq!(fault, Fault::TooLong(Place::At(address)));
}

#[test]
fn a_flood_before_the_handshake_is_not_taken_in() {
    let call = br#"{"jsonrpc":"2.0","id":7,"method":"x"}"#;
    let frame = [format!("Content-Length: {}\r\n\r\n", call.len()).as_bytes(), call].concat();
    let (fault, address) = refused(move || Say::Raw(frame.repeat(50_000)), None);
    assert_eq!(fault, Fault::TooLong(Place::At(address)));
}

#[test]
fn a_server_that_closes_is_gone() {
    let (fault, address) = refused(|| Say::Close, None);
    assert_eq!(fault, Fault::Gone(Place::At(address)));
}

#[test]
fn a_token_is_wrong_missing_or_unexpected_and_never_shown() {
    let at = |(fault, address): (Fault, SocketAddr)| {
        assert!(!format!("{fault} {fault:?}").contains("hunter2"), "{fault}");
        (fault, Place::At(address))
    };
    let (fault, place) = at(refused(|| Say::Error(-32002, "AUTHENTICATION_FAILED hunter2"), Some("hunter2")));
    assert_eq!(fault, Fault::WrongToken(place));
    let (fault, place) = at(refused(|| Say::Error(-32002, "AUTHENTICATION_FAILED"), None));
    assert_eq!(fault, Fault::TokenNeeded(place));
    let (fault, place) = at(refused(|| Say::Error(-32003, "AUTHENTICATION_NOT_CONFIGURED"), Some("hunter2")));
    assert_eq!(fault, Fault::TokenUnexpected(place));
    let (fault, place) = at(refused(|| Say::Error(-1, "what is hunter2?"), Some("hunter2")));
    assert_eq!(fault, Fault::NotCopilot(place));
}

#[test]
fn another_version_of_the_protocol_is_told() {
    let (fault, address) = refused(|| Say::Answer(json!({"ok": true, "protocolVersion": 99})), None);
    assert_eq!(fault, Fault::Protocol(Place::At(address), 99));
    assert!(fault.to_string().contains("version 99"), "{fault}");
}

#[test]
fn nobody_there_is_told_and_other_machines_are_not_asked() {
    run(async {
        // Taken, so that no other test listens there, and not listened on.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        let open = |address| async move {
            Link::open_within(&Endpoint { address, token: None }, Path::new(""), ANSWERED_WITHIN).await.unwrap_err()
        };
        assert_eq!(open(address).await, Fault::Refused(address));
        for other in ["192.0.2.1:80", "0.0.0.0:80", "[2001:db8::1]:80"] {
            let address = other.parse().unwrap();
            assert_eq!(open(address).await, Fault::NotLocal(address));
        }
    });
}

/// A call over a connection whose server does this about it.
fn failed(span: Duration, about_it: impl Fn() -> Say + Send + Sync + 'static) -> Fault {
    run(async {
        let fake = Fake::start(move |method, _, _| if method == "connect" { greeting() } else { about_it() }).await;
        let link = Link::open(&fake.endpoint, Path::new("")).await.unwrap();
        link.call_within(span, "session.abort", json!({})).await.unwrap_err()
    })
}

#[test]
fn every_call_has_a_deadline_and_says_how_it_failed() {
    assert!(matches!(failed(SHORT, || Say::Nothing), Fault::Silent { .. }));
    assert!(matches!(failed(ANSWERED_WITHIN, || Say::Close), Fault::Gone(_)));
    assert!(matches!(failed(ANSWERED_WITHIN, || Say::Raw(b"garbage\r\n\r\n".to_vec())), Fault::NotCopilot(_)));
    assert!(matches!(
        failed(ANSWERED_WITHIN, || Say::Error(-32601, "no such method")),
        Fault::Unknown(_, "session.abort")
    ));
    assert!(matches!(
        failed(ANSWERED_WITHIN, || Say::Error(
            -32603,
            "Request failed with message: Session not found for sessionId: x"
        )),
        Fault::NotLoaded(_)
    ));
    let Fault::Rejected(_, words) =
        failed(ANSWERED_WITHIN, || Say::Error(-32603, "cannot run \"rm -rf \\\" /home\" now\u{1b}[2J\n`ls`."))
    else {
        panic!("not rejected");
    };
    assert_eq!(&*words, "cannot run … now [2J ….", "quoted words may be the session's");
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
                Say::Answer(json!({}))
            }
            _ if !joined.load(std::sync::atomic::Ordering::SeqCst) => Say::Error(-32603, "Session not found"),
            _ => Say::Answer(json!({"abortable": true, "hasActiveWork": true})),
        }
    };
    run(async {
        let fake = Fake::start(terminal()).await;
        let link = Link::open(&fake.endpoint, Path::new("")).await.unwrap();
        assert!(matches!(link.reach("s", false).await, Err(Fault::NotLoaded(_))));
        assert_eq!(fake.called("session.resume"), 0);
        assert!(link.reach("s", true).await.unwrap().has_active_work);
        assert!(link.reach("s", true).await.unwrap().abortable);
        assert_eq!(fake.called("session.resume"), 1, "joined once");
    });
}

/// What stands in quotes may be a prompt or a command, and what a server says is logged.
#[test]
fn what_a_server_quotes_is_left_out() {
    for (said, told) in [
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
        assert_eq!(&*words(said), told, "{said:?}");
    }
    assert_eq!(words(&"x".repeat(10_000)).chars().count(), WORDS_MAX);
}

/// However a connection ends, and whoever gives it up in the middle, nothing of it is left: no task, and with that no buffer.
#[test]
fn of_a_connection_that_ends_badly_nothing_is_left() {
    const TIMES: usize = 200;
    const AT_ONCE: usize = 20;
    /// What the server does about the first call, what about the second, and whether the caller gives that up.
    type Way = (&'static str, fn() -> Say, fn() -> Say, bool);
    let babble = || Say::Raw(b"garbage\r\n\r\n".to_vec());
    let ways: [Way; 8] = [
        ("never answers", || Say::Nothing, || Say::Nothing, false),
        ("closes", || Say::Close, || Say::Nothing, false),
        ("babbles", babble, || Say::Nothing, false),
        ("wants a token", || Say::Error(-32002, "AUTHENTICATION_FAILED"), || Say::Nothing, false),
        ("is no Copilot", || Say::Answer(json!({})), || Say::Nothing, false),
        ("refuses a call", greeting, || Say::Error(-32603, "no"), false),
        ("goes at a call", greeting, || Say::Close, false),
        ("is given up in a call", greeting, || Say::Nothing, true),
    ];
    run(async {
        let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
        for (way, first, then, given_up) in ways {
            let fake = Fake::start(move |method, _, _| if method == "connect" { first() } else { then() }).await;
            let before = alive();
            for _ in 0..TIMES / AT_ONCE {
                let mut all = tokio::task::JoinSet::new();
                for _ in 0..AT_ONCE {
                    let endpoint = fake.endpoint.clone();
                    all.spawn(async move {
                        let Ok(link) = Link::open_within(&endpoint, Path::new(""), SHORT).await else { return };
                        let called = link.activity("s");
                        if given_up {
                            assert!(timeout(SHORT / 10, called).await.is_err(), "{way}");
                        } else {
                            called.await.unwrap_err();
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
            assert!(ended.is_ok(), "a server that {way}: {} tasks are left of {TIMES} connections", alive() - before);
        }
    });
}
