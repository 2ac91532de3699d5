//! Whether a name announces a secret: by the words in it, however they are joined.

/// The most words and letters of a name that are looked at. No name of a field has more.
const MOST_WORDS: usize = 16;
const LONGEST: usize = 160;

/// What a name says of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing.
    Plain,
    /// It is secret.
    Secret,
    /// It holds several secrets: `passwords`, `credentials`.
    Secrets,
}

/// Words that make a value secret wherever they stand.
const ANYWHERE: &[&str] = &[
    "authorization",
    "bearer",
    "credential",
    "dsn",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "psk",
    "pwd",
    "secret",
    "token",
];

/// Words that make a value secret at the end of a name.
const LAST: &[&str] = &["apikey", "cookie", "jwt", "pass"];

/// What a key that is secret is called: `apiKey`, `private_key`.
const KEYS: &[&str] = &[
    "access",
    "account",
    "admin",
    "api",
    "app",
    "application",
    "auth",
    "client",
    "consumer",
    "cookie",
    "decryption",
    "deploy",
    "encryption",
    "hmac",
    "integration",
    "jwt",
    "license",
    "master",
    "private",
    "rsa",
    "secret",
    "service",
    "session",
    "shared",
    "signing",
    "ssh",
    "ssl",
    "storage",
    "tls",
    "write",
];

/// Ends of names in one word: `adminpassword`, `apikey`.
const ENDS: &[&str] = &[
    "accesskey",
    "accountkey",
    "apikey",
    "connectionstring",
    "credential",
    "encryptionkey",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "sharedkey",
    "signingkey",
    "token",
];

/// Last words that say that a value is about a secret, and not the secret.
const ABOUT: &[&str] = &[
    "address",
    "algorithm",
    "annotation",
    "audience",
    "authentication",
    "class",
    "count",
    "description",
    "dir",
    "directory",
    "disabled",
    "duration",
    "enabled",
    "endpoint",
    "expiration",
    "expiry",
    "field",
    "file",
    "filename",
    "format",
    "header",
    "hint",
    "host",
    "hour",
    "id",
    "ids",
    "interval",
    "issuer",
    "kind",
    "label",
    "length",
    "lifetime",
    "limit",
    "manager",
    "max",
    "message",
    "min",
    "minute",
    "mode",
    "mount",
    "name",
    "namespace",
    "option",
    "path",
    "period",
    "policie",
    "policy",
    "port",
    "prefix",
    "property",
    "provider",
    "reason",
    "ref",
    "reference",
    "region",
    "renewal",
    "request",
    "required",
    "retention",
    "retry",
    "retrie",
    "review",
    "rotation",
    "schedule",
    "scope",
    "second",
    "selector",
    "size",
    "source",
    "state",
    "statu",
    "store",
    "strategy",
    "strength",
    "suffix",
    "template",
    "timeout",
    "ttl",
    "type",
    "uri",
    "url",
    "usage",
    "used",
    "user",
    "username",
    "validity",
    "version",
    "volume",
];

/// Last words that say nothing: `passwordBase64`, `token_value`.
const NOTHING: &[&str] = &[
    "b",
    "base",
    "content",
    "current",
    "data",
    "default",
    "encoded",
    "hash",
    "hex",
    "new",
    "old",
    "override",
    "pem",
    "plain",
    "plaintext",
    "previou",
    "primary",
    "raw",
    "secondary",
    "text",
    "value",
];

/// First words of names that refer to a Secret, or to what was made of one: `existingSecret`, `checksum/secret`.
const REFERRING: &[&str] =
    &["ca", "cert", "certificate", "checksum", "existing", "external", "hash", "image", "pull", "sha", "tls"];

/// First words of names that count.
const COUNTING: &[&str] = &["max", "maximum", "min", "minimum", "num", "number", "total"];

/// Beginnings of the words of the tables: a name without any of them announces nothing.
pub(crate) fn may_announce(name: &[u8]) -> bool {
    let mut window = 0_u32;
    for byte in name {
        window = window << 8 | u32::from(byte | 0x20);
        let found = matches!(
            &window.to_be_bytes(),
            b"auth" | b"bear" | b"cook" | b"cred" | b"pass" | b"priv" | b"secr" | b"toke" | b"trin"
        ) || matches!(&window.to_be_bytes()[1..], b"dsn" | b"jwt" | b"key" | b"psk" | b"pwd");
        if found {
            return true;
        }
    }
    false
}

/// What a name says of its value.
pub(crate) fn meaning(name: &[u8]) -> Meaning {
    if name.len() > LONGEST || !may_announce(name) {
        return Meaning::Plain;
    }
    let mut words = split(name);
    while words.len() > 1 && words.last().is_some_and(|last| NOTHING.contains(&last.singular())) {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else { return Meaning::Plain };
    let is = |table: &[&str], word: &Word| table.contains(&word.singular());
    let is_secret_id = last.0 == "id" && before.last().is_some_and(|word| word.0 == "secret");
    if is(ABOUT, last) && !is_secret_id
        || words.first().is_some_and(|first| is(COUNTING, first))
        || words.iter().any(|word| word.0 == "per")
    {
        return Meaning::Plain;
    }
    let is_secret = if last.singular() == "key" {
        before.last().is_some_and(|word| is(KEYS, word))
    } else {
        let strong: Vec<&Word> = words.iter().filter(|word| word.is_strong()).collect();
        let refers =
            strong.iter().all(|word| word.singular() == "secret") && before.iter().any(|word| is(REFERRING, word));
        let is_connection = last.singular() == "string" && before.last().is_some_and(|word| word.0 == "connection");
        !strong.is_empty() && !refers || is(LAST, last) || is_connection || before.is_empty() && last.0 == "auth"
    };
    match is_secret {
        false => Meaning::Plain,
        true if last.is_plural() => Meaning::Secrets,
        true => Meaning::Secret,
    }
}

/// The last word of a name, in lower case: `host` of `DB_HOST`.
pub(crate) fn last_word(name: &[u8]) -> String {
    split(name.get(..LONGEST).unwrap_or(name)).pop().map(|word| word.singular().to_owned()).unwrap_or_default()
}

/// Whether a name is about a secret beside it, such as a user or a host.
pub(crate) fn is_about(name: &[u8]) -> bool {
    let last = last_word(name);
    last == "key" || ABOUT.contains(&last.as_str())
}

/// A word of a name, in lower case and without a number at its end.
struct Word(String);

impl Word {
    fn singular(&self) -> &str {
        if self.is_plural() { &self.0[..self.0.len() - 1] } else { &self.0 }
    }

    fn is_plural(&self) -> bool {
        self.0.len() > 3 && self.0.ends_with('s') && !self.0.ends_with("ss")
    }

    fn is_strong(&self) -> bool {
        let word = self.singular();
        ANYWHERE.contains(&word) || ENDS.iter().any(|end| word.ends_with(end))
    }
}

/// The words of a name: `clientSecret`, `client-secret`, `CLIENT_SECRET` and `client.secret` have the same ones.
fn split(name: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, byte) in name.iter().enumerate() {
        let is_next_lower = || name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let was = |test: fn(&u8) -> bool| at > 0 && test(&name[at - 1]);
        let begins = byte.is_ascii_uppercase()
            && (was(u8::is_ascii_lowercase)
                || was(u8::is_ascii_digit)
                || was(u8::is_ascii_uppercase) && is_next_lower());
        if begins || !byte.is_ascii_alphanumeric() {
            end(&mut word, &mut words);
        }
        if byte.is_ascii_alphanumeric() {
            word.push(char::from(byte.to_ascii_lowercase()));
        }
        if words.len() >= MOST_WORDS {
            return words;
        }
    }
    end(&mut word, &mut words);
    words
}

fn end(word: &mut String, words: &mut Vec<Word>) {
    let taken = std::mem::take(word);
    let letters = taken.trim_end_matches(|character: char| character.is_ascii_digit());
    if !letters.is_empty() {
        words.push(Word(letters.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_words_as_they_are_compared() {
        for word in [ANYWHERE, LAST, KEYS, ENDS, ABOUT, NOTHING, REFERRING, COUNTING].concat() {
            let split = split(word.as_bytes());
            assert!(split.len() == 1 && split[0].singular() == word, "{word}");
        }
        for word in [ANYWHERE, LAST, ENDS].concat() {
            assert!(may_announce(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "Password",
            "adminPassword",
            "postgresPassword",
            "replicationPassword",
            "postgres-password",
            "PGPASSWORD",
            "db.password",
            "dbPass",
            "SMTP_PASS",
            "mysql_pwd",
            "adminpassword",
            "rootPassword1",
            "passwordHash",
            "githubToken",
            "github_token",
            "token",
            "tokenValue",
            "accessToken",
            "oauth2Token",
            "jwtSecret",
            "clientSecret",
            "OAuth2ClientSecret",
            "secret",
            "awsSecretAccessKey",
            "secret-access-key",
            "apiKey",
            "APIKey",
            "apikey",
            "X-Api-Key",
            "privateKey",
            "private_key_pem",
            "signingKey",
            "encryptionKeyBase64",
            "Authorization",
            "Proxy-Authorization",
            "connectionString",
            "AccountKey",
            "session_cookie",
            "sshPrivateKey",
            "basic-auth-password",
            "dsn",
            "example.com/password",
            "auth",
            "erlangCookie",
            "licenseKey",
            "secretId",
            "bearer",
        ] {
            assert_eq!(meaning(name.as_bytes()), Meaning::Secret, "{name}");
        }
        for name in ["apiKeys", "passwords", "accessTokens", "credentials", "GOOGLE_CREDENTIALS"] {
            assert_eq!(meaning(name.as_bytes()), Meaning::Secrets, "{name}");
        }
    }

    #[test]
    fn names_of_what_is_about_secrets_are_ordinary() {
        for name in [
            "passwordPolicy",
            "tokenReviewURL",
            "secretName",
            "secretKeyRef",
            "passwordSecretRef",
            "imagePullSecrets",
            "existingSecret",
            "passwordFile",
            "tokenPath",
            "secretsDir",
            "tokenTTL",
            "tokenExpirationSeconds",
            "passwordLength",
            "credentialName",
            "secretRef",
            "serviceAccountTokenName",
            "checksum/secret",
            "maxTokens",
            "tokens_per_fill",
            "key",
            "keys",
            "topologyKey",
            "publicKey",
            "name",
            "image",
            "author",
            "passThrough",
            "monkey",
            "secretary",
            "passwordKey",
            "tokenType",
            "accessKeyId",
            "authType",
            "authentication",
            "secretNamespace",
            "csi.storage.k8s.io/provisioner-secret-name",
            "tlsSecret",
            "partition-key",
            "",
            "automountServiceAccountTokenEnabled",
        ] {
            assert_eq!(meaning(name.as_bytes()), Meaning::Plain, "{name}");
        }
    }
}
