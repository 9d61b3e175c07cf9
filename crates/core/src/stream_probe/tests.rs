use super::*;

const NOW: Time = Time(1_700_000_000_000);

/// A connection on which a request was sent `asked` seconds ago.
fn connection(asked: i64) -> Connection {
    Connection {
        id: 1,
        state: ConnectionState::Open,
        is_resent: false,
        keeps_alive: true,
        last_sent: Span::seconds(asked),
        last_received: Span::seconds(asked),
        last_acknowledged: Span::seconds(5),
        sent: 41_000,
        received: 0,
        segments: 0,
        unread: 0,
    }
}

/// The same after `bytes` more in `segments`, the last of them `last` ms ago, ten seconds later.
fn later(before: &Connection, bytes: u64, segments: u64, last: i64) -> Connection {
    let last_received = if segments > 0 { Span(last) } else { before.last_received + WINDOW };
    Connection {
        last_sent: before.last_sent + WINDOW,
        last_received,
        received: before.received + bytes,
        segments: before.segments + segments,
        ..*before
    }
}

fn sockets(opened: &[Connection]) -> Sockets {
    Sockets { opened: opened.to_vec(), serves: false }
}

/// The result about the only session of a process, by two looks ten seconds apart.
fn found(before: &[Connection], after: &[Connection]) -> ProbeResult {
    let (before, after) = (sockets(before), sockets(after));
    probe_results(Some((&before, WINDOW)), &after, &[NOW - Span::seconds(60)], false, NOW)[0].probe_result
}

/// By one look.
fn at_once(opened: &[Connection]) -> ProbeResult {
    probe_results(None, &sockets(opened), &[NOW - Span::seconds(60)], false, NOW)[0].probe_result
}

const SILENT: ProbeResult = ProbeResult::Silent { may_not_stream: false };

/// Case 158, too. Bytes and segments in ten seconds, as the real CLI was seen to receive them.
#[test]
fn case_155_and_158_text_is_told_from_signs_of_life() {
    let before = connection(50);
    for (bytes, segments, is_text) in [
        (2_280, 10, true),     // 1 token a second
        (239_000, 1080, true), // 100
        (456, 2, true),        // 1 in 5 s
        (2_670, 10, true),     // reasoning
        (1_970, 10, true),     // empty deltas: they come as often
        (380, 10, true),       // compressed deltas over TLS
        (36, 2, false),        // a comment each 5 s
        (18, 1, false),
        (42, 1, false), // event: ping
        (64, 1, false), // over TLS
        (70, 2, false), // compressed, each 5 s
        (210, 4, false),
    ] {
        let expected = match is_text {
            true => ProbeResult::Receiving { bytes: Some(bytes), within: WINDOW },
            false => ProbeResult::Kept,
        };
        assert_eq!(found(&[before], &[later(&before, bytes, segments, 400)]), expected, "{bytes} B in {segments}");
    }
    assert_eq!(found(&[before], &[later(&before, 0, 0, 0)]), SILENT);
}

#[test]
fn one_look_goes_by_totals_and_by_what_came_last() {
    let silent = connection(60);
    assert_eq!(at_once(&[silent]), SILENT);
    let text = later(&silent, 40_000, 200, 300);
    assert_eq!(at_once(&[text]), ProbeResult::Receiving { bytes: None, within: WINDOW });
    let stalled = Connection { last_received: Span::seconds(11), ..text };
    assert_eq!(at_once(&[stalled]), SILENT);
    assert_eq!(at_once(&[later(&silent, 180, 10, 300)]), ProbeResult::Kept);
    // The answer of the last round, on a connection that is used again.
    let asked_again = Connection { last_sent: Span(200), last_received: Span(700), ..text };
    assert_eq!(at_once(&[asked_again]), SILENT);
    assert_eq!(at_once(&[later(&silent, 400, 1, 300)]), ProbeResult::Kept, "headers, or a refusal");
}

#[test]
fn whoever_asked_again_is_judged_by_what_came_since() {
    let before = later(&connection(40), 9_000, 40, 100);
    let asked = Connection { sent: before.sent + 50_000, last_sent: Span(1_000), ..later(&before, 0, 0, 0) };
    assert_eq!(found(&[before], &[asked]), SILENT, "the silence counts from the log");
    let new = Connection { id: 2, ..later(&connection(1), 2_000, 9, 100) };
    assert_eq!(found(&[before], &[new]), ProbeResult::Receiving { bytes: None, within: WINDOW });
}

#[test]
fn case_157_the_kernel_proves_that_nobody_answers() {
    let before = connection(50);
    let after = later(&before, 0, 0, 0);
    let proofs =
        [Connection { is_resent: true, ..after }, Connection { last_acknowledged: Span::seconds(76), ..after }];
    for proof in proofs {
        assert_eq!(found(&[before], &[proof]), ProbeResult::Unanswered);
        assert_eq!(at_once(&[proof]), ProbeResult::Unanswered);
    }
    let unprobed = Connection { keeps_alive: false, last_acknowledged: Span::seconds(50), ..after };
    assert_eq!(found(&[before], &[unprobed]), SILENT);
    let connecting = Connection { state: ConnectionState::Connecting, sent: 0, ..after };
    assert_eq!(found(&[], &[connecting]), ProbeResult::Connecting);
}

#[test]
fn what_copilot_does_not_read_is_proven() {
    let before = connection(50);
    let unread = Connection { unread: 2_280, ..later(&before, 2_280, 10, 300) };
    let waits = Connection { unread: 5_000, ..before };
    assert_eq!(
        found(&[Connection { unread: 1, ..before }], &[Connection { unread: 2_281, ..unread }]),
        ProbeResult::Unread
    );
    assert_eq!(
        found(&[waits], &[Connection { unread: 5_000, ..later(&before, 0, 0, 0) }]),
        ProbeResult::Unread,
        "full"
    );
    // The last segment has just arrived.
    let just_now = Connection { unread: 228, ..later(&before, 228, 1, 1) };
    assert_eq!(found(&[before], &[just_now]), ProbeResult::Receiving { bytes: Some(228), within: WINDOW });
    assert_eq!(at_once(&[Connection { last_received: Span::seconds(3), ..unread }]), ProbeResult::Unread);
    let left = Connection { last_received: Span::seconds(3), ..just_now };
    assert_eq!(found(&[before], &[left]), ProbeResult::Unread);
    // It reads, and has not come to the end.
    let behind = Connection { unread: 228, ..later(&before, 2_280, 10, 300) };
    let expected = ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW };
    assert_eq!(found(&[Connection { unread: 300, ..before }], &[behind]), expected);
    assert_eq!(found(&[waits], &[Connection { unread: 4_000, ..later(&before, 0, 0, 0) }]), SILENT);
}

#[test]
fn without_a_connection_copilot_waits_or_its_client_answers() {
    let to_tools = Connection { sent: 5_000, ..later(&connection(60), 9_000, 40, 100) };
    let closing = Connection { state: ConnectionState::Closing, ..connection(60) };
    for opened in [&[][..], &[to_tools], &[closing]] {
        assert_eq!(at_once(opened), ProbeResult::NoConnection);
        let mut served = sockets(opened);
        served.serves = true;
        let asked = [NOW - Span::seconds(60)];
        let unknown = ProbeResult::Unknown(Blind::Client);
        assert_eq!(probe_results(None, &served, &asked, false, NOW)[0].probe_result, unknown);
        assert_eq!(probe_results(None, &sockets(opened), &asked, true, NOW)[0].probe_result, unknown);
    }
}

#[test]
fn a_short_window_waits_for_slow_text() {
    let before = later(&connection(20), 1_000, 4, 2_000);
    let after = later(&before, 0, 0, 0);
    let window = Span::seconds(3);
    let after = Connection { last_received: Span::seconds(5), ..after };
    let asked = [NOW - Span::seconds(30)];
    let found = probe_results(Some((&sockets(&[before]), window)), &sockets(&[after]), &asked, false, NOW)[0];
    assert_eq!(found.probe_result, ProbeResult::Receiving { bytes: None, within: WINDOW });
    assert_eq!(found.last, Some(Span::seconds(5)));
}

#[test]
fn a_short_window_asks_for_less() {
    let before = connection(20);
    let after = later(&before, 110, 1, 100);
    let asked = [NOW - Span::seconds(30)];
    let of = |within| {
        probe_results(Some((&sockets(&[before]), within)), &sockets(&[after]), &asked, false, NOW)[0].probe_result
    };
    assert_eq!(of(WINDOW), ProbeResult::Kept);
    let within = Span::seconds(5);
    assert_eq!(of(within), ProbeResult::Receiving { bytes: Some(110), within });
}

/// A connection says when it was heard of only if that was since the session asked.
#[test]
fn what_was_heard_before_the_session_asked_does_not_count() {
    let last = |one: Connection| probe_results(None, &sockets(&[one]), &[NOW - Span::seconds(60)], false, NOW)[0].last;
    let answered = later(&connection(60), 40_000, 200, 300);
    assert_eq!(last(answered), Some(Span(300)));
    assert_eq!(last(Connection { last_sent: Span(200), ..answered }), None);
    assert_eq!(last(connection(60)), None, "the age of the connection");
}

#[test]
fn copilots_own_word_is_exact_about_text() {
    let last = Some(Span(300));
    let (receiving, silent) =
        (ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW }, ProbedStream { probe_result: SILENT, last });
    let receives = Word::Receives { bytes: Some(900), within: Span::seconds(8), last: Span(20) };
    for probe_result in
        [receiving, SILENT, ProbeResult::Kept, ProbeResult::NoConnection, ProbeResult::Unknown(Blind::Shared)]
    {
        let found = ProbedStream { probe_result, last }.with_word(Some(receives), false);
        let expected = ProbeResult::Receiving { bytes: Some(900), within: Span::seconds(8) };
        assert_eq!(found, ProbedStream { probe_result: expected, last: Some(Span(20)) });
        assert_eq!(ProbedStream { probe_result, last }.with_word(None, true), ProbedStream { probe_result, last });
    }
    let without =
        |probe_result, streams| ProbedStream { probe_result, last }.with_word(Some(Word::Silent), streams).probe_result;
    assert_eq!(without(receiving, true), ProbeResult::Kept, "what arrives is no text");
    assert_eq!(without(receiving, false), receiving, "an answer in one piece");
    assert_eq!(without(ProbeResult::Unknown(Blind::Shared), true), SILENT);
    assert_eq!(without(ProbeResult::Unknown(Blind::Shared), false), ProbeResult::Silent { may_not_stream: true });
    assert_eq!(without(ProbeResult::Unknown(Blind::Client), false), ProbeResult::NoConnection);
    assert_eq!(without(ProbeResult::Unanswered, true), ProbeResult::Unanswered);
    assert_eq!(silent.with_word(None, false).probe_result, ProbeResult::Silent { may_not_stream: true });
}

/// Two sessions of one process: one streams, one hangs.
#[test]
fn connections_belong_to_sessions_by_when_they_asked() {
    let streams = later(&connection(30), 2_280, 10, 100);
    let hangs = Connection { id: 2, ..later(&connection(44), 0, 0, 0) };
    let now = sockets(&[streams, hangs]);
    let before =
        sockets(&[Connection { received: 0, segments: 0, ..connection(30) }, Connection { id: 2, ..connection(44) }]);
    let of = |asked: &[i64]| -> Vec<ProbeResult> {
        let asked: Vec<_> = asked.iter().map(|seconds| NOW - Span::seconds(*seconds)).collect();
        probe_results(Some((&before, WINDOW)), &now, &asked, false, NOW)
            .iter()
            .map(|found| found.probe_result)
            .collect()
    };
    let receiving = ProbeResult::Receiving { bytes: Some(2_280), within: WINDOW };
    assert_eq!(of(&[41, 55]), [receiving, SILENT]);
    assert_eq!(of(&[55, 41]), [SILENT, receiving]);
    let unknown = ProbeResult::Unknown(Blind::Shared);
    assert_eq!(of(&[41, 42]), [unknown, unknown], "never the nearest");
    assert_eq!(of(&[41, 90]), [receiving, unknown]);
    let both_hang = sockets(&[Connection { id: 3, ..hangs }, hangs]);
    let asked = [NOW - Span::seconds(54), NOW - Span::seconds(55)];
    let found = probe_results(None, &both_hang, &asked, false, NOW);
    assert_eq!(found, [ProbedStream::from(SILENT); 2], "whichever is whose");
    let both_stream = sockets(&[Connection { id: 3, ..streams }, streams]);
    let asked_both = [NOW - Span::seconds(41), NOW - Span::seconds(42)];
    let found = probe_results(None, &both_stream, &asked_both, false, NOW);
    assert_eq!(found.iter().map(|found| found.last).collect::<Vec<_>>(), [None, None], "and not since when");
    let found = probe_results(None, &now, &[NOW - Span::seconds(41), NOW - Span::seconds(55)], false, NOW);
    assert_eq!(found[0].last, Some(Span(100)));
    // The network is down: what is sent again no longer tells who asked when.
    let resent = Connection { is_resent: true, last_sent: Span::seconds(9), ..hangs };
    let connecting = Connection { id: 3, state: ConnectionState::Connecting, sent: 0, ..hangs };
    for (opened, expected) in [
        (&[resent, Connection { id: 4, ..resent }][..], ProbeResult::Unanswered),
        (&[resent, connecting], ProbeResult::Unanswered),
        (&[connecting, Connection { id: 4, ..connecting }], ProbeResult::Connecting),
        (&[resent, Connection { id: 4, last_sent: Span::seconds(9), ..hangs }], unknown),
    ] {
        let found = probe_results(None, &sockets(opened), &asked, false, NOW);
        assert_eq!(found, [ProbedStream::from(expected); 2]);
    }
    let none = probe_results(None, &sockets(&[]), &asked, false, NOW);
    assert_eq!([none[0].probe_result, none[1].probe_result], [ProbeResult::NoConnection, ProbeResult::NoConnection]);
}

/// Whichever of them is whose, when something last arrived is not known of any.
#[test]
fn of_connections_that_say_the_same_only_that_is_known() {
    let receives = |id| {
        let last_received = Span::seconds(5);
        Connection { id, received: 100 * SEGMENT, segments: ANSWER, last_received, ..connection(60) }
    };
    let asked = NOW - Span::seconds(60);
    let both = probe_results(None, &sockets(&[receives(1), receives(2)]), &[asked, asked], false, NOW);
    let receiving = ProbeResult::Receiving { bytes: None, within: WINDOW };
    assert_eq!(both, [ProbedStream::from(receiving), ProbedStream::from(receiving)]);
    let dead = [
        Connection { is_resent: true, ..receives(1) },
        Connection { state: ConnectionState::Connecting, ..receives(2) },
    ];
    let dead = probe_results(None, &sockets(&dead), &[asked, asked], false, NOW);
    assert_eq!(dead, [ProbedStream::from(ProbeResult::Unanswered), ProbedStream::from(ProbeResult::Unanswered)]);
    let alone = probe_results(None, &sockets(&[receives(1)]), &[asked], false, NOW);
    assert_eq!(alone, [ProbedStream { probe_result: receiving, last: Some(Span::seconds(5)) }]);
}

#[test]
fn the_limits_of_what_a_connection_shows_are_exact() {
    let sends = |sent| at_once(&[Connection { sent, ..connection(60) }]);
    assert_eq!([REQUEST - 1, REQUEST].map(sends), [ProbeResult::NoConnection, SILENT]);
    let acknowledged = |last_acknowledged| at_once(&[Connection { last_acknowledged, ..connection(60) }]);
    assert_eq!(
        [ACKNOWLEDGES_WITHIN, ACKNOWLEDGES_WITHIN + Span(1)].map(acknowledged),
        [SILENT, ProbeResult::Unanswered]
    );
    assert_eq!(at_once(&[connection(5)]), SILENT, "nothing was received");
    for (more, expected) in [(Span::ZERO, ProbeResult::Kept), (Span(1), ProbeResult::Unread)] {
        let last_received = READS_WITHIN + more;
        let unread = Connection { received: 100, segments: 1, unread: 10, last_received, ..connection(60) };
        assert_eq!(at_once(&[unread]), expected);
        let before = Connection { received: 90, unread: 0, ..unread };
        let unread = Connection { unread: 10, ..unread };
        assert_eq!(found(&[before], &[unread]), expected);
    }
}
