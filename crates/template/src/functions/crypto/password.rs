//! Passwords derived from a master password, as Master Password does it.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

const SEED: &str = "com.lyndir.masterpassword";

/// The shapes of a kind of password.
fn shapes(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The password of a site, or why there is none.
pub(super) fn derive(counter: u32, kind: &str, password: &str, user: &str, site: &str) -> String {
    let Some(shapes) = shapes(kind) else { return format!("cannot find password template {kind}") };
    let named = |name: &str| [SEED.as_bytes(), &(name.len() as u32).to_be_bytes(), name.as_bytes()].concat();
    let mut key = [0; 64];
    let derived = scrypt::Params::new(15, 8, 2).map_err(|error| error.to_string()).and_then(|parameters| {
        scrypt::scrypt(password.as_bytes(), &named(user), &parameters, &mut key).map_err(|error| error.to_string())
    });
    if let Err(error) = derived {
        return format!("failed to derive password: {error}");
    }
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else { return "failed to derive password".to_owned() };
    mac.update(&named(site));
    mac.update(&counter.to_be_bytes());
    let seed = mac.finalize().into_bytes();
    let shape = shapes[seed[0] as usize % shapes.len()];
    let pick = |(class, byte): (u8, &u8)| {
        let choices = characters(class);
        char::from(choices[*byte as usize % choices.len()])
    };
    shape.bytes().zip(&seed[1..]).map(pick).collect()
}
