//! A second opinion: what OpenSSL's command line says of certificates of ours, and what is said of those that it makes.

use super::model::SECRET;
use super::world::{World, options};
use jobwright_jobs::init_cert::{Dialling, Options, check};
use std::path::Path;
use std::process::{Command, Output};

/// Runs openssl in a directory; none, and a line that says so, if it is not installed.
fn openssl(directory: &Path, line: &str) -> Option<Output> {
    let output = Command::new("openssl").args(line.split_whitespace()).current_dir(directory).output().ok();
    if output.is_none() {
        println!("skipped: openssl is not installed");
    }
    output
}

/// What a command that has to succeed prints.
fn said(directory: &Path, line: &str) -> Option<String> {
    let output = openssl(directory, line)?;
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "openssl {line}: {out}{error}");
    Some(out.into_owned())
}

#[tokio::test(start_paused = true)]
async fn openssl_finds_nothing_wrong_with_what_is_made() {
    let wanted = Options { cluster_domain: Some("cluster.local".to_owned()), ..options() };
    let (one, two) = (World::running_with(&wanted).await, World::running().await);
    let home = tempfile::tempdir().unwrap();
    let here = home.path();
    for (name, world, secret, key) in [
        ("leaf.crt", &one, SECRET, "tls.crt"),
        ("leaf.key", &one, SECRET, "tls.key"),
        ("ca.crt", &one, "hook-tls-ca", "tls.crt"),
        ("ca.key", &one, "hook-tls-ca", "tls.key"),
        ("other.crt", &two, "hook-tls-ca", "tls.crt"),
    ] {
        std::fs::write(here.join(name), world.secret_text(secret, key).await).unwrap();
    }
    let at = one.drydock.now().as_second();
    for name in wanted.names() {
        let verify = format!(
            "verify -attime {at} -x509_strict -purpose sslserver -verify_hostname {name} -CAfile ca.crt leaf.crt"
        );
        let Some(told) = said(here, &verify) else { return };
        assert_eq!(told.trim(), "leaf.crt: OK");
    }
    for (line, why) in [
        (format!("verify -attime {at} -CAfile other.crt leaf.crt"), "another CA does not vouch for it"),
        (format!("verify -attime {at} -purpose sslclient -CAfile ca.crt leaf.crt"), "it is for servers alone"),
        (format!("verify -attime {at} -verify_hostname hook.other.svc -CAfile ca.crt leaf.crt"), "it is for its names"),
    ] {
        assert!(!openssl(here, &line).unwrap().status.success(), "{why}");
    }
    for (certificate, key) in [("leaf.crt", "leaf.key"), ("ca.crt", "ca.key")] {
        let public = said(here, &format!("x509 -in {certificate} -noout -pubkey"));
        assert_eq!(public, said(here, &format!("pkey -in {key} -pubout")), "{key} is the key of {certificate}");
        assert!(said(here, &format!("pkey -in {key} -noout -text")).unwrap().contains("P-256"));
    }
    let serials =
        ["leaf.crt", "ca.crt", "other.crt"].map(|name| said(here, &format!("x509 -in {name} -noout -serial")));
    assert!(serials[0] != serials[1] && serials[1] != serials[2], "{serials:?}");
    let text = said(here, "x509 -in ca.crt -noout -text").unwrap();
    for part in ["CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "Subject Key Identifier"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let text = said(here, "x509 -in leaf.crt -noout -text").unwrap();
    for part in ["CA:FALSE", "Digital Signature", "TLS Web Server Authentication", "Authority Key Identifier"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn pairs_that_openssl_makes_are_understood_and_weak_ones_renewed() {
    let ext = "-days 20000 -subj /CN=hook -addext subjectAltName=DNS:hook,DNS:hook.shop,DNS:hook.shop.svc";
    let req = |more: &str| format!("req -x509 -key key.pem -out crt.pem {ext} {more}");
    let cases = [
        ("genrsa -traditional -out key.pem 2048", req("-sha256"), None),
        ("genrsa -out key.pem 2048", req("-sha256"), None),
        ("ecparam -name prime256v1 -genkey -noout -out key.pem", req("-sha256"), None),
        ("ecparam -name secp384r1 -genkey -noout -out key.pem", req("-sha384"), None),
        ("genpkey -algorithm ed25519 -out key.pem", req(""), None),
        ("genrsa -out key.pem 1024", req("-sha256"), Some("an RSA key of 1024 bits is too weak")),
        (
            "ecparam -name secp256k1 -genkey -noout -out key.pem",
            req("-sha256"),
            Some("a key on this curve is too weak"),
        ),
    ];
    let home = tempfile::tempdir().unwrap();
    for (key, certificate, problem) in cases {
        if said(home.path(), key).is_none() || said(home.path(), &certificate).is_none() {
            return;
        }
        let read = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
        let world = World::empty().await;
        let (certificate, secret) = (read("crt.pem"), read("key.pem"));
        world
            .fill("kubernetes.io/tls", &[("tls.crt", &certificate), ("tls.key", &secret), ("ca.crt", &certificate)])
            .await;
        // Drydock's time stands before the clock on the wall.
        world.pass(std::time::Duration::from_hours(24 * 365 * 4)).await;
        let world = World { dialling: Dialling::Not("nobody serves".to_owned()), ..world };
        let report = check(&world.surroundings(None), &Options::new("shop", "hook", SECRET)).await.unwrap();
        match problem {
            None => assert_eq!(report.action.to_string(), "kept", "{key}: {report:?}"),
            Some(problem) => assert_eq!(report.reason, problem, "{key}"),
        }
    }
}
