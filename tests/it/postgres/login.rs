//! Passwords, certificates and channel binding.

use std::{fs, thread};

use super::{Files, Service, serving};
use crate::database::{PASSWORD, shared};

#[test]
fn passwords_are_found_where_postgresql_looks_and_never_shown() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let address = database.address_of("guarded@127.0.0.1", &name, "batches");
    let files = Files::new();
    let pass = |text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = files.at("pass");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let right = format!("127.0.0.1:{}:*:guarded:{PASSWORD}\n", database.port);
    let run = |address: &str, variables: &[(&str, &str)]| {
        let scripted = serving(&[&[]]);
        let service = Service::scripted(&scripted);
        let mut command = service.command(&["export", "-vv", "-o", address]);
        command.envs(variables.iter().copied());
        let ended = command.output();
        assert!(!ended.stderr.contains(PASSWORD), "{ended:?}");
        (ended, scripted.requests().len())
    };
    let (ended, asked) = run(&address, &[]);
    assert_eq!((ended.code, asked), (Some(8), 0), "{ended:?}");
    assert!(
        ended.stderr.contains("requires a password") && ended.stderr.contains(".pgpass"),
        "{ended:?}"
    );

    let (ended, asked) = run(&address, &[("PGPASSWORD", "wrong-and-hidden")]);
    assert_eq!((ended.code, asked), (Some(8), 0), "{ended:?}");
    assert!(
        ended.stderr.contains("28P01") && ended.stderr.contains("`guarded`"),
        "{ended:?}"
    );
    assert!(!ended.stderr.contains("wrong-and-hidden"), "{ended:?}");
    let inline = address.replace("guarded@", "guarded:wrong-and-hidden@");
    let (ended, _) = run(&inline, &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(!ended.stderr.contains("wrong-and-hidden"), "{ended:?}");

    let (ended, _) = run(&address, &[("PGPASSWORD", PASSWORD)]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (ended, _) = run(&address, &[("PGPASSFILE", &pass(&right, 0o600))]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (ended, _) = run(&address, &[("PGPASSFILE", &pass(&right, 0o644))]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(ended.stderr.contains("chmod 600"), "{ended:?}");
    let inline = address.replace("guarded@", &format!("guarded:{PASSWORD}@"));
    let (ended, _) = run(&inline, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let all = [
        ("PGHOST", database.socket_folder().to_str().unwrap()),
        ("PGPORT", &database.port.to_string()),
        ("PGUSER", "postgres"),
        ("PGDATABASE", &name),
    ];
    let (ended, _) = run("postgres://", &all);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("(0 new, 0 changed, 1 unchanged)"),
        "{ended:?}"
    );
}

#[test]
fn certificates_are_checked_according_to_sslmode() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let certificate = database.certificate.to_str().unwrap();
    let address = |host: &str, more: &str| {
        let plain = database.address_of(&format!("postgres@{host}"), &name, "batches");
        format!("{plain}{more}")
    };
    let rooted = format!("&sslmode=verify-full&sslrootcert={certificate}");
    let authority = format!("&sslmode=verify-ca&sslrootcert={certificate}");
    for (address, args, code) in [
        (address("localhost", ""), &[][..], 0),
        (address("localhost", "&sslmode=disable"), &[], 0),
        (address("localhost", "&sslmode=require"), &[], 0),
        (address("localhost", "&sslmode=verify-full"), &[], 13),
        (address("localhost", "&sslmode=verify-ca"), &[], 13),
        (
            address("localhost", "&sslmode=verify-full"),
            &["--ca-cert", certificate],
            0,
        ),
        (
            address("127.0.0.1", "&sslmode=verify-full"),
            &["--ca-cert", certificate],
            13,
        ),
        (
            address("127.0.0.1", "&sslmode=verify-ca"),
            &["--ca-cert", certificate],
            0,
        ),
        (address("localhost", &rooted), &[], 0),
        (address("127.0.0.1", &rooted), &[], 13),
        (address("127.0.0.1", &authority), &[], 0),
        (
            address("localhost", "&sslmode=verify-full&sslrootcert=/nonexistent"),
            &[],
            2,
        ),
    ] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, args);
        assert_eq!(ended.code, Some(code), "{address} {ended:?}");
        if code == 13 {
            assert!(
                ended.stderr.contains("is not trusted") && ended.stderr.contains("`--ca-cert`"),
                "{ended:?}"
            );
            assert_eq!(scripted.requests().len(), 0);
        }
    }
    let (scripted, files) = (serving(&[&[]]), Files::new());
    let service = Service::scripted(&scripted);
    service.run(&["export", "-o", &files.at("a.csv")]);
    let tls = address("localhost", "&sslmode=verify-full");
    let ended = service.run(&["verify", &tls, "--against", &files.at("a.csv")]);
    assert_eq!(ended.code, Some(13), "{ended:?}");
    let ended = service.run(&[
        "verify",
        &tls,
        "--against",
        &files.at("a.csv"),
        "--ca-cert",
        certificate,
    ]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn channel_binding_can_be_required() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    let guarded = format!("guarded:{PASSWORD}@localhost");
    let address = |user: &str, more: &str| {
        let plain = database.address_of(user, &name, "batches");
        format!("{plain}{more}")
    };
    let trusted = "postgres@localhost";
    for (address, code, why) in [
        (address(&guarded, "&channel_binding=require"), 0, ""),
        (
            address(&guarded, "&channel_binding=require&sslmode=require"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=disable&sslmode=require"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=prefer&sslmode=disable"),
            0,
            "",
        ),
        (
            address(&guarded, "&channel_binding=require&sslmode=disable"),
            2,
            "`channel_binding=require` needs TLS",
        ),
        // This user needs no password, so nothing is bound to the channel.
        (
            address(trusted, "&channel_binding=require"),
            13,
            "did not use channel binding",
        ),
    ] {
        let scripted = serving(&[&[]]);
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_eq!(ended.code, Some(code), "{address} {ended:?}");
        assert!(ended.stderr.contains(why), "{ended:?}");
        assert_eq!(scripted.requests().is_empty(), code != 0, "{address}");
    }
}

#[test]
fn a_remote_host_must_offer_tls() {
    // The server answers that it has no TLS.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 8];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(b"N").unwrap();
        }
    });
    let scripted = serving(&[&[]]);
    for demand in ["sslmode=verify-full", "channel_binding=require"] {
        let address = format!("postgres://me@127.0.0.1:{port}/db?{demand}");
        let ended = Service::scripted(&scripted).export(&address, &[]);
        assert_eq!(ended.code, Some(13), "{ended:?}");
        assert!(ended.stderr.contains("does not support TLS"), "{ended:?}");
        assert_eq!(scripted.requests().len(), 0);
    }
}
