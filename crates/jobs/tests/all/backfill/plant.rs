//! Kinds of places where people leave secrets: objects with a value in one of them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// A kind of place: an object with a value under a name.
pub(crate) type Place = (&'static str, fn(&str, &str) -> Value);

fn upper(name: &str) -> String {
    name.replace(['-', '.'], "_").to_uppercase()
}

fn container(container: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [container]}}}})
}

fn map(data: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "data": data})
}

fn spec(spec: &Value) -> Value {
    json!({"metadata": {"name": "a"}, "spec": spec})
}

fn marked(annotations: &Value) -> Value {
    json!({"metadata": {"name": "a", "annotations": annotations}})
}

/// Places where only the name tells that a value is secret.
pub(crate) const NAMED: &[Place] = &[
    ("field", |name, value| spec(&json!({name: value}))),
    ("field deep inside", |name, value| spec(&json!({"values": {"global": [{"auth": {name: value}}]}}))),
    ("list of a field", |name, value| spec(&json!({name: ["other", value]}))),
    ("value in a field", |name, value| spec(&json!({name: {"value": value}}))),
    ("map of a plural", |name, value| spec(&json!({format!("{name}Credentials"): {"alice": value}}))),
    ("variable", |name, value| container(&json!({"env": [{"name": upper(name), "value": value}]}))),
    ("variable, value first", |name, value| container(&json!({"env": [{"value": value, "name": name}]}))),
    ("map of variables", |name, value| container(&json!({"env": {name: value}}))),
    ("variables as texts", |name, value| container(&json!({"env": [format!("{}={value}", upper(name))]}))),
    ("argument with its value", |name, value| container(&json!({"args": [format!("--{name}={value}")]}))),
    ("argument before its value", |name, value| container(&json!({"args": [format!("--{name}"), value, "--level=3"]}))),
    ("argument before a value like a flag", |name, value| {
        container(&json!({"args": [format!("--{name}"), format!("-{value}")]}))
    }),
    ("argument before another, and its value", |name, value| {
        container(&json!({"args": [format!("--{name}"), format!("--{name}"), value]}))
    }),
    ("command before arguments", |name, value| {
        container(&json!({"args": [value, "run"], "command": ["app", format!("--{name}")]}))
    }),
    ("arguments as a text", |name, value| container(&json!({"args": format!("--level 3 --{name} {value}")}))),
    ("arguments elsewhere", |name, value| spec(&json!({"extraFlags": [format!("--{name}"), value]}))),
    ("arguments as a map", |name, value| spec(&json!({"extraArgs": {format!("--{name}"): value}}))),
    ("assignment in a shell", |name, value| {
        container(&json!({"command": ["sh", "-c", format!("export {}={value} && run", upper(name))]}))
    }),
    ("flag in a shell", |name, value| {
        container(&json!({"command": ["sh", "-c", format!("run --{name} '{value}' -v")]}))
    }),
    ("header in a shell", |_, value| {
        container(&json!({"command": ["sh", "-c", format!("curl -H 'Authorization: Bearer {value}' h")]}))
    }),
    ("property of Java", |name, value| {
        container(&json!({"env": [{"name": "JAVA_OPTS", "value": format!("-Xmx1g -D{name}={value} -Da=b")}]}))
    }),
    ("parameters of Argo", |name, value| {
        spec(&json!({"source": {"helm": {"parameters": [{"name": name, "value": value}]}}}))
    }),
    ("parameters with keys", |name, value| spec(&json!({"params": [{"key": name, "value": value}]}))),
    ("default of a parameter", |name, value| spec(&json!({"params": [{"default": value, "name": name}]}))),
    ("header of a probe", |_, value| {
        container(
            &json!({"livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": format!("Bearer {value}")}]}}}),
        )
    }),
    ("header by its name", |name, value| spec(&json!({"headers": [{"header": format!("X-{name}"), "value": value}]}))),
    ("user of an address", |_, value| spec(&json!({"repo": format!("https://{value}@github.example/a")}))),
    ("password of an address", |_, value| spec(&json!({"uri": format!("amqp://u:{value}@h:5672/v")}))),
    ("parameter of an address", |name, value| spec(&json!({"url": format!("https://h/in?a=b&{name}={value}&c=d")}))),
    ("signature of an address", |_, value| spec(&json!({"url": format!("https://h/in?sv=1&Sig={value}")}))),
    ("connection", |_, value| spec(&json!({"target": format!("Server=db;AccountKey={value};Pool=3")}))),
    ("annotation", |name, value| marked(&json!({name: value}))),
    ("annotation of a domain", |name, value| marked(&json!({format!("shop.example.com/{name}"): value}))),
    ("annotation with JSON", |name, value| marked(&json!({"note": json!({name: value, "a": 1}).to_string()}))),
    ("label", |name, value| json!({"metadata": {"name": "a", "labels": {name: value}}})),
    ("setting", |name, value| map(&json!({name: value}))),
    ("properties", |name, value| map(&json!({"app.properties": format!("a=b\n{name}={value}\nc=d\n")}))),
    ("ini", |name, value| map(&json!({"app.ini": format!("[db]\n{name} = {value} and more\nc = d\n")}))),
    ("YAML", |name, value| map(&json!({"app.yaml": format!("db:\n  host: h\n  {name}: {value}\n  c: d\n")}))),
    ("quoted YAML", |name, value| map(&json!({"app.yaml": format!("db:\n  {name}: \"{value}\"\n")}))),
    ("block of YAML", |name, value| map(&json!({"app.yaml": format!("{name}: |-\n  first\n  {value}\nc: d\n")}))),
    ("list of YAML", |name, value| map(&json!({"app.yaml": format!("{name}:\n  - first\n  - {value}\nc: d\n")}))),
    ("map of YAML in a line", |name, value| {
        map(&json!({"app.yaml": format!("db: {{host: h, {name}: {value}, c: d}}\n")}))
    }),
    ("map of YAML", |name, value| {
        map(&json!({"app.yaml": format!("{name}Credentials:\n  alice: a\n  bob: {value}\nc: d\n")}))
    }),
    ("map of JSON", |name, value| {
        map(&json!({"app.json": json!({format!("{name}Credentials"): {"alice": "a", "bob": value}}).to_string()}))
    }),
    ("XML", |name, value| map(&json!({"app.xml": format!("<db><{name}>{value}</{name}></db>")}))),
    ("directive of a server", |_, value| {
        map(&json!({"nginx.conf": format!("proxy_set_header Authorization \"Bearer 1{value}\";")}))
    }),
    ("manifest in a text", |name, value| {
        map(&json!({"pod.yaml": format!("env:\n- name: {}\n  value: {value}\n- name: A\n  value: b\n", upper(name))}))
    }),
    ("arguments in a manifest", |name, value| {
        map(&json!({"pod.yaml": format!("args:\n- --{name}\n- {value}\n- --level=3\n")}))
    }),
    ("JSON", |name, value| map(&json!({"app.json": json!({"a": {name: value}, "b": 1}).to_string()}))),
    ("JSON in JSON", |name, value| {
        map(&json!({"app.json": json!({"a": json!({name: value}).to_string()}).to_string()}))
    }),
    ("variables in a file", |name, value| map(&json!({".env": format!("A=b\nexport {}='{value}'\n", upper(name))}))),
    ("values of Helm as a text", |name, value| {
        spec(&json!({"source": {"helm": {"values": format!("auth:\n  {name}: {value}\n")}}}))
    }),
    ("literals of Kustomize", |name, value| {
        spec(&json!({"secretGenerator": [{"literals": [format!("{name}={value}")]}]}))
    }),
    ("private key", |_, value| {
        spec(&json!({"pem": format!("-----BEGIN EC PRIVATE KEY-----\n{value}\n-----END EC PRIVATE KEY-----\n")}))
    }),
    ("credentials of a registry", |_, value| {
        map(&json!({"config.json": json!({"auths": {"r.example": {"auth": value}}}).to_string()}))
    }),
    ("Secret inside of another object", |_, value| {
        spec(&json!({"manifests": [{"kind": "Secret", "data": {"a": value}, "stringData": {"b": value}}]}))
    }),
    ("object as it was applied", |_, value| {
        marked(&json!({"kubectl.kubernetes.io/last-applied-configuration": value}))
    }),
    (
        "message",
        |_, value| json!({"metadata": {"name": "a"}, "status": {"message": format!("cannot reach https://u:{value}@h/")}}),
    ),
];

/// Places where nothing tells that a value is secret but that a Secret has it.
pub(crate) const UNNAMED: &[Place] = &[
    ("field", |_, value| spec(&json!({"foo": value}))),
    ("inside of a text", |_, value| spec(&json!({"foo": format!("before{value}after")}))),
    ("item of a list", |_, value| spec(&json!({"foo": ["a", [value]]}))),
    ("key of a map", |_, value| spec(&json!({"foo": {value: "bar"}}))),
    ("argument", |_, value| container(&json!({"args": ["-p", value]}))),
    ("short flag", |_, value| container(&json!({"command": ["sh", "-c", format!("mysql -p{value}")]}))),
    ("variable", |_, value| container(&json!({"env": [{"name": "FOO", "value": value}]}))),
    ("annotation", |_, value| marked(&json!({"foo": value}))),
    ("label", |_, value| json!({"metadata": {"name": "a", "labels": {"foo": value}}})),
    ("setting", |_, value| map(&json!({"foo": value}))),
    ("line of a setting", |_, value| map(&json!({"foo": format!("one\n{value}\n\"two\"\n")}))),
    ("JSON in a setting", |_, value| map(&json!({"foo": json!({"a\n": [value]}).to_string()}))),
    ("base64", |_, value| spec(&json!({"foo": STANDARD.encode(value)}))),
    ("base64 with a user", |_, value| spec(&json!({"foo": STANDARD.encode(format!("user:{value}"))}))),
    ("address", |_, value| {
        spec(&json!({"foo": format!("https://h/?q={}", utf8_percent_encode(value, NON_ALPHANUMERIC))}))
    }),
    ("path of an address", |_, value| spec(&json!({"foo": format!("https://hooks.example/{value}/x")}))),
    (
        "status",
        |_, value| json!({"metadata": {"name": "a"}, "status": {"conditions": [{"message": format!("no {value}")}]}}),
    ),
];
