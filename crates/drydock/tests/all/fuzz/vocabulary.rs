//! Words that mean something to a cluster, and some that do not.

use crate::fuzz::tape::Tape;
use serde_json::{Number, Value};

pub const NAMES: &[&str] =
    &["a", "b", "web", "data", "migrate", "settings", "gadgets.shop.example", "default", "drydock"];
pub const NAMESPACES: &[&str] = &["default", "kube-system", "shop", "nowhere", "going"];

#[rustfmt::skip]
const TEXTS: &[&str] = &[
    "", "a", "b", "x", "-", "/", ".", "..", "*", "$", "~1", "~0", "é", "\u{0}", "\u{1F600}", "a b", "a/b", "a/b/c",
    "A_B", "true", "1", "-1", "0", "1e9999", "9223372036854775808", "10%", "300%", "0x10", "1Gi", "100m", "1.5",
    "-5", "1e-30", "9Ei", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z",
    "-9999-01-01T00:00:00Z", "2026-13-45", "2026-01-01T00:00:00.123456Z", "1h", "5s", "-1s", "99999999999h", "UTC",
    "Europe/Berlin", "* * * * *", "@every 1s", "@hourly", "*/5 1-3 * * mon", "0 0 30 2 *", "10.0.0.0/8",
    "10.96.0.10", "::", "None", "None:x", "a:b", "[::1]:80", "Always", "Never", "OnFailure", "Recreate",
    "RollingUpdate", "OnDelete", "Parallel", "Indexed", "Foreground", "Background", "Orphan", "ClusterIP",
    "LoadBalancer", "NodePort", "ExternalName", "TCP", "Exists", "In", "NotIn", "DoesNotExist", "Gt", "NoExecute",
    "NoSchedule", "ReadWriteOnce", "Retain", "Delete", "WaitForFirstConsumer", "FailJob", "Ignore", "Count",
    "FailIndex", "Failed", "Complete", "True", "False", "Unknown", "Running", "Ready", "batch/v1", "v1", "apps/v1",
    "Job", "Pod", "ConfigMap", "kubernetes.io/hostname", "batch.kubernetes.io/job-name", "metadata.name",
    "metadata.labels['a']", "spec.nodeName", "status.podIP", "limits.cpu", "{.spec.x}", ".spec.replicas", "app",
    "default", "drydock", "busybox", "shop/api:1", "host.invalid/x:1", "x@sha256:abc", "^(a+)+$", "(", "[a-z]{1,9}",
];

/// Shell lines of containers.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "true", "exit 3", "sleep 5; echo done", "while true; do sleep 1; done", "while true; do :; done",
    "while true; do echo x; done", "until false; do true; done", "for i in 1 2 3; do echo $i; done",
    "trap 'exit 0' TERM; while true; do sleep 1; done", "sleep -1", "sleep 99999999999999999999", "sleep infinity",
    "echo ${", "'", "\"", "(((((", "a=1; echo $a$a$a; test -e /x || touch /x", "if true; then exit 1; fi",
    "sleep 1 & wait", "cat /x | grep y", "exit 99999", "exit -1", "echo $(echo $(echo x))", ":(){ :|:& };:",
];

/// A text.
pub fn text(tape: &mut Tape) -> String {
    match tape.below(12) {
        0..8 => (*tape.choose(TEXTS)).to_owned(),
        8 => (*tape.choose(NAMES)).to_owned(),
        9 => (*tape.choose(LINES)).to_owned(),
        10 => String::from_utf8_lossy(&tape.bytes(12)).into_owned(),
        _ => tape.choose(TEXTS).repeat(tape.below(80)),
    }
}

pub fn integer(tape: &mut Tape) -> i64 {
    #[rustfmt::skip]
    const EDGES: &[i64] = &[
        0, 1, 2, 3, 5, -1, 7, 30, 80, 100, 110, 600, 3_600, 65_535, 65_536, 100_000, 2_147_483_647, 2_147_483_648,
        -2_147_483_648, i64::MAX, i64::MIN, i64::MAX - 1, 1 << 53, 315_576_000_000,
    ];
    *tape.choose(EDGES)
}

/// A JSON value that holds no other ones.
pub fn scalar(tape: &mut Tape) -> Value {
    match tape.below(8) {
        0 => Value::Null,
        1 => Value::from(tape.once_in(2)),
        2 | 3 => Value::from(integer(tape)),
        4 => {
            Number::from_f64([0.5, -0.0, 1e300, 1e-300, 3.0, 1.5e18][tape.below(6)]).map_or(Value::Null, Value::Number)
        }
        _ => Value::from(text(tape)),
    }
}
