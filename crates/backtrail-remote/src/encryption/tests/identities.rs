//! A wrong identity is noticed before anything is written, and recipients read what they should.

use std::sync::atomic::{AtomicBool, Ordering};

use backtrail::replica::{
    Answer, BlobKind, Fence, Lease, ObjectPlace, Replica, ReplicaErrorKind, Request,
};

use super::super::{EncryptedReplica, Identities, Recipient};
use super::{
    Below, Person, append, begin, end_of, fence_of, lease, line, log, named, read, written,
};

#[test]
fn a_wrong_identity_is_noticed_before_anything_is_written() {
    let (me, other) = (Person::new("me.txt"), Person::new("/home/other/keys.txt"));
    let below = Below::new();
    let log = log("a");
    let (fence, end) = written(&me.at(&below), &log);
    let payload = named(BlobKind::Payload, b"words");
    let pack = named(BlobKind::Pack, b"words");
    let objects = vec![ObjectPlace {
        id: [1; 32],
        pack: pack.hash,
        from: 0,
        bytes: 1,
    }];
    let requests = [
        lease(&log, "other"),
        append(&log, fence, end, vec![line(9, "words")]),
        begin(&log, fence, Some(end), 9, line(9, "words")),
        Request::SealPack {
            log: log.clone(),
            objects,
        },
        Request::Locate {
            log: log.clone(),
            ids: vec![[1; 32]],
        },
        Request::Status { log: log.clone() },
        Request::Trails { log: log.clone() },
        read(&log, 0),
    ];
    below.seen();
    // Each by a client that asks nothing before.
    let replica = || other.at(&below);
    let mut errors = Vec::new();
    for request in &requests {
        errors.push(replica().ask(request).expect_err("it has no key"));
    }
    for name in [payload, pack] {
        errors.push(replica().put_blob(&log, name, b"words").unwrap_err());
        errors.push(replica().get_blob(&log, name, None).unwrap_err());
        errors.push(replica().get_blob(&log, name, Some((0, 1))).unwrap_err());
        errors.push(replica().has_blobs(&log, &[name]).unwrap_err());
    }
    for error in errors {
        assert_eq!(error.kind, ReplicaErrorKind::Denied, "{error}");
        let said = "cannot open session a with the identity file /home/other/keys.txt: it is \
                    encrypted for other recipients; name the identity file of one of them";
        assert_eq!(error.message, said);
    }
    assert_eq!(below.seen().writes, 0);
    let without = EncryptedReplica::new(below.clone(), Vec::new(), Identities::none());
    let error = without.ask(&lease(&log, "other")).unwrap_err();
    assert!(
        error.message.contains("without an identity file"),
        "{error}"
    );
    assert_eq!(below.seen().writes, 0);
}

#[test]
fn a_log_that_could_not_be_opened_again_is_not_created() {
    let (me, other) = (Person::new("me.txt"), Person::new("other.txt"));
    let below = Below::new();
    let for_others = EncryptedReplica::new(
        below.clone(),
        vec![other.recipient.clone()],
        me.identities.clone(),
    );
    let error = for_others.ask(&lease(&log("a"), "me")).unwrap_err();
    assert_eq!(error.kind, ReplicaErrorKind::Denied);
    assert!(error.message.contains("session a"), "{error}");
    assert!(error.message.contains("identity file me.txt"), "{error}");
    assert!(error.message.contains("add your own recipient"), "{error}");
    assert_eq!(below.seen().writes, 0);
}

#[test]
fn every_recipient_reads_and_writes_and_nobody_else() {
    let people = [Person::new("1"), Person::new("2"), Person::new("3")];
    let below = Below::new();
    let first_two = EncryptedReplica::new(
        below.clone(),
        people[..2].iter().map(|p| p.recipient.clone()).collect(),
        people[0].identities.clone(),
    );
    let old = log("old");
    let (_, end) = written(&first_two, &old);
    // Recipients of new logs change nothing about older ones.
    let last_two = EncryptedReplica::new(
        below.clone(),
        people[1..].iter().map(|p| p.recipient.clone()).collect(),
        people[1].identities.clone(),
    );
    let new = log("new");
    written(&last_two, &new);
    let expected = last_two.ask(&read(&old, 0)).unwrap();
    assert_eq!(first_two.ask(&read(&old, 0)), Ok(expected));
    let release = Request::Release {
        log: old.clone(),
        fence: Fence(1),
    };
    first_two.ask(&release).unwrap();
    let Answer::Leased { fence, log: status } = last_two.ask(&lease(&old, "second")).unwrap()
    else {
        panic!("no lease");
    };
    assert_eq!(status.head, Some(end));
    let more = append(&old, fence, end, vec![line(9, "more")]);
    let written = last_two.ask(&more).unwrap();
    assert_eq!(written, Answer::Appended(end_of(1, &line(9, "more"))));
    for (person, opens) in people
        .iter()
        .zip([[true, false], [true, true], [false, true]])
    {
        let replica = person.at(&below);
        for (log, opens) in [&old, &new].into_iter().zip(opens) {
            assert_eq!(replica.ask(&read(log, 0)).is_ok(), opens);
        }
    }
}

#[test]
fn any_of_several_identity_files_opens() {
    let (me, other) = (Person::new("me.txt"), Person::new("other.txt"));
    let below = Below::new();
    let log = log("a");
    written(&other.at(&below), &log);
    let identity = age::x25519::Identity::generate();
    let mut both = me.identities.clone();
    let text = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
    both.add_file("third.txt", &text).unwrap();
    let replica = EncryptedReplica::new(below.clone(), Vec::new(), both.clone());
    let error = replica.ask(&read(&log, 0)).unwrap_err();
    assert!(error.message.contains("me.txt, third.txt"), "{error}");
    let recipients = vec![other.recipient.clone(), both.recipients()[1].clone()];
    let replica = EncryptedReplica::new(below, recipients, both);
    fence_of(&replica, &super::log("b"));
}

#[test]
fn lists_have_logs_of_others_without_words() {
    let (me, other) = (Person::new("me.txt"), Person::new("other.txt"));
    let below = Below::new();
    let (ours, theirs) = (log("a"), log("b"));
    let (_, end) = written(&me.at(&below), &ours);
    written(&other.at(&below), &theirs);
    let replica = me.at(&below);
    let list = Request::List {
        after: None,
        limit: 9,
    };
    let Answer::Logs(logs) = replica.ask(&list).unwrap() else {
        panic!("no list");
    };
    let holder = |lease: &Option<Lease>| lease.as_ref().unwrap().holder.clone();
    assert_eq!(logs.len(), 2);
    assert_eq!(logs[0].1.head, Some(end));
    assert_eq!(holder(&logs[0].1.lease), "bot at desk, process 7");
    assert!(logs[0].1.wrapped_key.is_empty());
    assert_ne!(logs[1].1.head, Some(end));
    assert_eq!(holder(&logs[1].1.lease), "(encrypted)");
    assert!(!logs[1].1.wrapped_key.is_empty());
    let changes = Request::Changes {
        after: 0,
        limit: 99,
    };
    let Answer::Changes(changes) = replica.ask(&changes).unwrap() else {
        panic!("no changes");
    };
    let said: Vec<_> = changes
        .iter()
        .map(|change| (change.end == end, change.by.as_str()))
        .collect();
    let (bot, unknown) = ("bot at desk, process 7", "(encrypted)");
    let expected = [
        (false, bot),
        (false, bot),
        (true, bot),
        (false, unknown),
        (false, unknown),
        (false, unknown),
    ];
    assert_eq!(said, expected);
}

#[test]
fn who_creates_a_log_at_the_same_moment_gets_the_key_of_the_other() {
    let me = Person::new("me.txt");
    let below = Below::new();
    let (one, two) = (me.at(&below), me.at(&below));
    let log = log("a");
    let (fence, end) = written(&one, &log);
    let release = Request::Release {
        log: log.clone(),
        fence,
    };
    one.ask(&release).unwrap();
    // As if it had been created just after the question.
    let asked = AtomicBool::new(false);
    below.alter_answers(move |answer| {
        if matches!(answer, Answer::Log(_)) && !asked.swap(true, Ordering::SeqCst) {
            *answer = Answer::Absent;
        }
    });
    let Answer::Leased { log: status, .. } = two.ask(&lease(&log, "two")).unwrap() else {
        panic!("no lease");
    };
    assert_eq!(status.head, Some(end));
    let Answer::Held(held) = one.ask(&lease(&log, "one")).unwrap() else {
        panic!("two writers have the lease");
    };
    assert_eq!(held.holder, "two");
}

#[test]
fn what_is_no_recipient_says_so_without_secrets() {
    let identity = age::x25519::Identity::generate();
    let secret = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
    let recipient = identity.to_public().to_string();
    assert!(recipient.parse::<Recipient>().is_ok());
    assert!(format!(" {recipient}\n").parse::<Recipient>().is_ok());
    let error = secret.parse::<Recipient>().unwrap_err().to_string();
    assert!(error.contains("age-keygen -y"), "{error}");
    assert!(!error.contains(&secret[20..30]), "{error}");
    for text in ["", "age1", "ssh-ed25519 AAAA", "köln", &recipient[..20]] {
        let error = text.parse::<Recipient>().unwrap_err().to_string();
        assert!(error.contains("begins with age1"), "{error}");
    }
}

#[test]
fn what_is_no_identity_file_says_so_without_secrets() {
    let identity = age::x25519::Identity::generate();
    let secret = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
    let mut identities = Identities::none();
    let typo = format!("# mine\n\n{secret}x\n");
    for (text, said) in [
        (typo.as_str(), "line 3 is not an identity"),
        ("# nothing\n", "it has no identity"),
        ("", "it has no identity"),
        ("age-encryption.org/v1\n-> scrypt …", "age -d k.txt"),
        ("-----BEGIN AGE ENCRYPTED FILE-----", "age -d k.txt"),
    ] {
        let error = identities.add_file("k.txt", text).unwrap_err().to_string();
        assert!(error.contains("identity file k.txt"), "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!error.contains(&secret[20..30]), "{error}");
    }
    assert!(identities.recipients().is_empty());
    let crlf = format!("# mine\r\n{secret}\r\n");
    identities.add_file("k.txt", &crlf).unwrap();
    assert_eq!(identities.recipients().len(), 1);
    assert!(!format!("{identities:?}").contains(&secret[20..30]));
}
