//! The certificates of a cluster, by one authority of its own, and the kubeconfigs made of them.

use super::address;
use super::place::Place;
use crate::error::Error;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::json;
use std::net::IpAddr;
use std::path::Path;

/// Users of the API: what they are called in files, and by the API, with their group.
const USERS: [(&str, &str, Option<&str>); 5] = [
    ("admin", "admin", Some("system:masters")),
    ("controller-manager", "system:kube-controller-manager", None),
    ("scheduler", "system:kube-scheduler", None),
    ("kube-proxy", "system:kube-proxy", None),
    ("kubelet", "system:node:", Some("system:nodes")),
];

const API_NAMES: [&str; 5] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// Writes all certificates and kubeconfigs, unless they are there.
pub(super) fn make(place: &Place) -> Result<(), Error> {
    let directory = place.certificates();
    if directory.is_dir() {
        return Ok(());
    }
    // Renamed at the end, so it is whole or absent.
    let new = directory.with_extension("new");
    let doing = || format!("write the certificates of the cluster to `{}`", new.display());
    let _ = std::fs::remove_dir_all(&new);
    std::fs::create_dir_all(&new).map_err(Error::io(doing()))?;
    write(place, &new).map_err(|error| Error::io(doing())(std::io::Error::other(error)))?;
    std::fs::rename(&new, &directory).map_err(Error::io(doing()))
}

/// A kubeconfig of the administrator that finds the API server at a port of the host's loopback.
pub(super) fn kubeconfig_for_host(place: &Place, port: u16) -> Result<(), Error> {
    let inside = place.kubeconfig_of("admin");
    let text = std::fs::read_to_string(&inside).map_err(Error::io(format!("read `{}`", inside.display())))?;
    let outside = text.replace(&api(), &format!("https://127.0.0.1:{port}"));
    let path = place.kubeconfig();
    std::fs::write(&path, outside).map_err(Error::io(format!("write `{}`", path.display())))
}

/// Where processes inside find the API server.
fn api() -> String {
    format!("https://{}:{}", address::NODE, address::API_PORT)
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn write(place: &Place, directory: &Path) -> Result<(), Failure> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, format!("{}-ca", place.name()));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    std::fs::write(directory.join("ca.crt"), authority.pem())?;
    std::fs::write(directory.join("ca.key"), authority.key().serialize_pem())?;
    // Service account tokens are signed by a key that needs no certificate.
    let tokens = KeyPair::generate()?;
    std::fs::write(directory.join("sa.key"), tokens.serialize_pem())?;
    std::fs::write(directory.join("sa.pub"), tokens.public_key_pem())?;

    let node = place.node();
    let issue = |file: &str, name: &str, group: Option<&str>, hosts: &[&str]| -> Result<(String, String), Failure> {
        let mut leaf = CertificateParams::default();
        leaf.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            leaf.distinguished_name.push(DnType::OrganizationName, group);
        }
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        for host in hosts {
            leaf.subject_alt_names.push(match host.parse::<IpAddr>() {
                Ok(ip) => SanType::IpAddress(ip),
                Err(_) => SanType::DnsName((*host).try_into()?),
            });
        }
        let key = KeyPair::generate()?;
        let certificate = leaf.signed_by(&key, &authority)?.pem();
        let key = key.serialize_pem();
        std::fs::write(directory.join(format!("{file}.crt")), &certificate)?;
        std::fs::write(directory.join(format!("{file}.key")), &key)?;
        Ok((certificate, key))
    };
    let hosts = [&API_NAMES[..], &["127.0.0.1", address::NODE, address::API_SERVICE]].concat();
    issue("apiserver", "kube-apiserver", None, &hosts)?;
    issue("apiserver-kubelet-client", "apiserver-kubelet-client", Some("system:masters"), &[])?;
    issue("kubelet-server", &node, None, &[&node, address::NODE])?;
    for (file, name, group) in USERS {
        let name = if file == "kubelet" { format!("{name}{node}") } else { name.to_owned() };
        let (certificate, key) = issue(file, &name, group, &[])?;
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": place.name().as_str(),
            "clusters": [{"name": place.name().as_str(), "cluster": {
                "server": api(),
                "certificate-authority-data": STANDARD.encode(authority.pem()),
            }}],
            "users": [{"name": file, "user": {
                "client-certificate-data": STANDARD.encode(certificate),
                "client-key-data": STANDARD.encode(key),
            }}],
            "contexts": [{"name": place.name().as_str(), "context": {
                "cluster": place.name().as_str(), "user": file, "namespace": "default",
            }}],
        });
        std::fs::write(directory.join(format!("{file}.kubeconfig")), serde_json::to_string_pretty(&kubeconfig)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_a_kubeconfig_with_a_certificate_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        write(&Place::of(&"test".parse().unwrap()), directory.path()).unwrap();
        let mut certificates = std::collections::BTreeSet::new();
        for (user, ..) in USERS {
            let text = std::fs::read(directory.path().join(format!("{user}.kubeconfig"))).unwrap();
            let kubeconfig: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], api());
            certificates.insert(kubeconfig["users"][0]["user"]["client-certificate-data"].to_string());
        }
        assert_eq!(certificates.len(), USERS.len());
    }
}
