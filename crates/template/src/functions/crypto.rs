//! Hashes, passwords, keys and certificates.

mod password;

use super::random::draw;
use super::{Function, Returned, bytes, function, integer, string, text, value};
use crate::crypto::certificate::{Certificate, Request};
use crate::crypto::key::Key;
use crate::environment::Keys;
use crate::error::Failure;
use crate::execute::Machine;
use crate::host::{Field, Host, Struct};
use crate::value::{Operand, Type, Value};
use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use data_encoding::{BASE64, HEXLOWER};
use sha1::Sha1;
use sha2::{Digest as _, Sha256, Sha512};

const TEXT: &[Type] = &[Type::Text];
const TWO: &[Type] = &[Type::Text, Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    function("sha1sum", TEXT, |machine, arguments| {
        let digest = HEXLOWER.encode(&Sha1::digest(bytes(&machine.heap, arguments, 0)));
        Ok(machine.heap.string(digest))
    }),
    function("sha256sum", TEXT, |machine, arguments| {
        let digest = HEXLOWER.encode(&Sha256::digest(bytes(&machine.heap, arguments, 0)));
        Ok(machine.heap.string(digest))
    }),
    function("sha512sum", TEXT, |machine, arguments| {
        let digest = HEXLOWER.encode(&Sha512::digest(bytes(&machine.heap, arguments, 0)));
        Ok(machine.heap.string(digest))
    }),
    function("adler32sum", TEXT, |machine, arguments| {
        let (mut one, mut two) = (1_u32, 0_u32);
        for byte in bytes(&machine.heap, arguments, 0) {
            one = (one + u32::from(*byte)) % 65521;
            two = (two + one) % 65521;
        }
        Ok(machine.heap.string((two << 16 | one).to_string()))
    }),
    function("bcrypt", TEXT, |machine, arguments| {
        let hash = bcrypt_of(machine, arguments, 0);
        Ok(machine.heap.string(hash))
    }),
    function("htpasswd", TWO, |machine, arguments| {
        let user = string(machine, arguments, 0);
        if user.contains(':') {
            return Ok(machine.heap.string(format!("invalid username: {user}")));
        }
        let hash = bcrypt_of(machine, arguments, 1);
        Ok(machine.heap.string(format!("{user}:{hash}")))
    }),
    function(
        "derivePassword",
        &[Type::Uint32, Type::Text, Type::Text, Type::Text, Type::Text],
        |machine, arguments| {
            let [kind, password, user, site] = [1, 2, 3, 4].map(|index| string(machine, arguments, index));
            let derived = password::derive(integer(arguments, 0) as u32, &kind, &password, &user, &site);
            Ok(machine.heap.string(derived))
        },
    ),
    function("encryptAES", TWO, encrypt),
    function("decryptAES", TWO, decrypt),
    function("genPrivateKey", TEXT, |machine, arguments| {
        let kind = string(machine, arguments, 0);
        let fast = machine.environment.entropy.keys == Keys::Fast;
        let mut random = draw(machine);
        let key = match kind.as_str() {
            "" | "rsa" if fast => Key::generate_p256(&mut random),
            "" | "rsa" => Key::generate_rsa(&mut random, 4096),
            "ecdsa" => Key::generate_p256(&mut random),
            "ed25519" => Key::generate_ed25519(&mut random),
            "dsa" => Key::generate_dsa(&mut random),
            _ => return Ok(machine.heap.string(format!("Unknown type {kind}"))),
        };
        Ok(machine.heap.string(key.to_pem()))
    }),
    function("buildCustomCert", TWO, |machine, arguments| {
        let part = |index: usize, what: &str| {
            BASE64.decode(bytes(&machine.heap, arguments, index)).map_err(|_| format!("unable to decode base64 {what}"))
        };
        let (certificate, key) = (part(0, "certificate")?, part(1, "private key")?);
        let text = String::from_utf8_lossy(&certificate).into_owned();
        Certificate::from_pem(&text).map_err(|error| match error {
            None => "unable to decode certificate".to_owned(),
            Some(error) => format!("error parsing certificate: decodedCert.Bytes: {error}"),
        })?;
        let key = String::from_utf8_lossy(&key).into_owned();
        Key::from_pem(&key).map_err(|error| format!("error parsing private key: {error}"))?;
        Ok(pair(machine, &text, &key))
    }),
    function("genCA", &[Type::Text, Type::Int], |machine, arguments| {
        let request = request(machine, arguments, None, 1, true)?;
        issued(machine, request, None, None)
    }),
    function("genCAWithKey", &[Type::Text, Type::Int, Type::Text], |machine, arguments| {
        let key = given_key(machine, arguments, 2)?;
        let request = request(machine, arguments, None, 1, true)?;
        issued(machine, request, Some(key), None)
    }),
    function("genSelfSignedCert", &[Type::Text, Type::List, Type::List, Type::Int], |machine, arguments| {
        let request = request(machine, arguments, Some((1, 2)), 3, false)?;
        issued(machine, request, None, None)
    }),
    function(
        "genSelfSignedCertWithKey",
        &[Type::Text, Type::List, Type::List, Type::Int, Type::Text],
        |machine, arguments| {
            let key = given_key(machine, arguments, 4)?;
            let request = request(machine, arguments, Some((1, 2)), 3, false)?;
            issued(machine, request, Some(key), None)
        },
    ),
    function(
        "genSignedCert",
        &[Type::Text, Type::List, Type::List, Type::Int, Type::Certificate],
        |machine, arguments| signed(machine, arguments, None),
    ),
    function(
        "genSignedCertWithKey",
        &[Type::Text, Type::List, Type::List, Type::Int, Type::Certificate, Type::Text],
        |machine, arguments| {
            let key = given_key(machine, arguments, 5)?;
            signed(machine, arguments, Some(key))
        },
    ),
];

/// A bcrypt hash, or why there is none, as Sprig returns it.
fn bcrypt_of(machine: &mut Machine<'_>, arguments: &[Operand], index: usize) -> String {
    let mut salt = [0; 16];
    salt.copy_from_slice(&draw(machine).bytes(16));
    let password = bytes(&machine.heap, arguments, index);
    if password.len() > 72 {
        return "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned();
    }
    match bcrypt::hash_with_salt(password, 10, salt) {
        Ok(parts) => parts.format_for_version(bcrypt::Version::TwoA),
        Err(error) => format!("failed to encrypt string with bcrypt: {error}"),
    }
}

fn cipher(machine: &Machine<'_>, arguments: &[Operand]) -> Aes256 {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(bytes(&machine.heap, arguments, 0)) {
        *slot = *byte;
    }
    Aes256::new(&key.into())
}

/// AES-256-CBC with a random first block.
fn encrypt(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    if text(arguments, 1).len() == 0 {
        return Ok(machine.heap.string(""));
    }
    let mut output = draw(machine).bytes(16);
    let cipher = cipher(machine, arguments);
    let mut content = bytes(&machine.heap, arguments, 1).to_vec();
    let padding = 16 - content.len() % 16;
    content.extend(std::iter::repeat_n(padding as u8, padding));
    for block in content.chunks(16) {
        let previous = &output[output.len() - 16..];
        let mixed: [u8; 16] = std::array::from_fn(|index| block[index] ^ previous[index]);
        let mut block = Array::from(mixed);
        cipher.encrypt_block(&mut block);
        output.extend_from_slice(&block);
    }
    Ok(machine.heap.string(BASE64.encode(&output)))
}

fn decrypt(machine: &mut Machine<'_>, arguments: &[Operand]) -> Returned {
    if text(arguments, 1).len() == 0 {
        return Ok(machine.heap.string(""));
    }
    let crypted = BASE64
        .decode(bytes(&machine.heap, arguments, 1))
        .map_err(|error| format!("illegal base64 data at input byte {}", error.position))?;
    if crypted.len() < 16 {
        return Err(format!("runtime error: slice bounds out of range [:16] with capacity {}", crypted.len()).into());
    }
    if !crypted.len().is_multiple_of(16) {
        return Err("crypto/cipher: input not full blocks".into());
    }
    let cipher = cipher(machine, arguments);
    let mut output = Vec::new();
    for (previous, block) in crypted.chunks(16).zip(crypted.chunks(16).skip(1)) {
        let block: [u8; 16] = std::array::from_fn(|index| block[index]);
        let mut block = Array::from(block);
        cipher.decrypt_block(&mut block);
        output.extend(block.iter().zip(previous).map(|(one, other)| one ^ other));
    }
    let padding = output.last().copied().ok_or("runtime error: index out of range [-1]")?;
    let kept = output.len().checked_sub(padding.into()).ok_or_else(|| {
        Failure::Message(format!(
            "runtime error: slice bounds out of range [:{}]",
            output.len() as i64 - i64::from(padding)
        ))
    })?;
    Ok(machine.heap.string(&output[..kept]))
}

/// A `sprig.certificate`.
fn pair(machine: &mut Machine<'_>, certificate: &str, key: &str) -> Value {
    let field = |machine: &mut Machine<'_>, name, text: &str| {
        let value = machine.heap.string(text);
        Field { name, json: name, omit_empty: false, value, is_interface: false }
    };
    let fields = vec![field(machine, "Cert", certificate), field(machine, "Key", key)];
    machine.heap.host(Host::Struct(Struct { type_name: "sprig.certificate", is_pointer: false, fields, string: None }))
}

fn given_key(machine: &Machine<'_>, arguments: &[Operand], index: usize) -> Result<Key, Failure> {
    let pem = string(machine, arguments, index);
    Key::from_pem(&pem).map_err(|error| Failure::Message(format!("parsing private key: {error}")))
}

/// What a certificate is to say; `names` has the arguments with addresses and names.
fn request(
    machine: &Machine<'_>,
    arguments: &[Operand],
    names: Option<(usize, usize)>,
    days: usize,
    is_authority: bool,
) -> Result<Request, Failure> {
    let texts = |index: Option<usize>, refusal: &str| {
        let Some(Value::List(list)) = index.map(|index| value(arguments, index)) else { return Ok(Vec::new()) };
        let items = machine.heap.get_list(list).items.iter();
        let texts = items.map(|item| match item {
            Value::Text(text) => Ok(machine.heap.str(*text)),
            other => {
                let shown = crate::format::sprint(&machine.heap, &[*other])?;
                Err(Failure::Message(format!("{refusal}: {} is not a string", String::from_utf8_lossy(&shown))))
            }
        });
        texts.collect::<Result<Vec<_>, _>>()
    };
    let addresses = texts(names.map(|(addresses, _)| addresses), "error parsing ip")?;
    let addresses = addresses.iter().map(|address| address.parse().map_err(|_| format!("error parsing ip: {address}")));
    Ok(Request {
        common_name: string(machine, arguments, 0),
        addresses: addresses.collect::<Result<_, _>>()?,
        names: texts(names.map(|(_, names)| names), "error processing alternate dns name")?,
        not_before: machine.environment.entropy.now,
        days: integer(arguments, days),
        is_authority,
    })
}

fn issued(
    machine: &mut Machine<'_>,
    request: Request,
    key: Option<Key>,
    authority: Option<(Certificate, Key)>,
) -> Returned {
    let mut random = draw(machine);
    let key = key.unwrap_or_else(|| match machine.environment.entropy.keys {
        Keys::Rsa => Key::generate_rsa(&mut random, 2048),
        Keys::Fast => Key::generate_p256(&mut random),
    });
    let certificate = request
        .issue(&key, authority.as_ref().map(|(certificate, key)| (certificate, key)), &mut random)
        .map_err(|error| format!("error creating certificate: {error}"))?;
    let pem = key.to_pem();
    Ok(pair(machine, &certificate, &pem))
}

fn signed(machine: &mut Machine<'_>, arguments: &[Operand], key: Option<Key>) -> Returned {
    let Value::Host(host) = value(arguments, 4) else { return Err("unable to decode certificate".into()) };
    let Host::Struct(structure) = machine.heap.get_host(host) else {
        return Err("unable to decode certificate".into());
    };
    let part = |name| match structure.field(name).map(|field| field.value) {
        Some(Value::Text(text)) => machine.heap.str(text),
        _ => String::new(),
    };
    let authority = Certificate::from_pem(&part("Cert")).map_err(|error| match error {
        None => "unable to decode certificate".to_owned(),
        Some(error) => format!("error parsing certificate: decodedSignerCert.Bytes: {error}"),
    })?;
    let authority_key = Key::from_pem(&part("Key")).map_err(|error| format!("error parsing private key: {error}"))?;
    let request = request(machine, arguments, Some((1, 2)), 3, false)?;
    issued(machine, request, key, Some((authority, authority_key)))
}
