//! What Helm hands to the templates of a chart, for tests.

use jobwright_template::{
    Entropy, Environment, Field, Heap, Helm, LIMITS, Limits, ListType, MapType, NoCluster, Numbers, Program, Render,
    Struct, Value,
};

/// The name of the file that is rendered.
pub(crate) const FILE: &str = "demo/templates/t.yaml";

/// Values as Helm reads a values file: all numbers are floats.
pub(crate) fn values(heap: &mut Heap, json: &serde_json::Value) -> Value {
    let values = heap.import(json, Numbers::Floats);
    if let Value::Map(map) = values {
        heap.retype(map, MapType::Values("chartutil.Values"));
    }
    values
}

fn structure(heap: &mut Heap, type_name: &'static str, is_pointer: bool, fields: &[(&'static str, Value)]) -> Value {
    let fields = fields.iter().map(|(name, value)| Field {
        name,
        json: name,
        omit_empty: false,
        value: *value,
        is_interface: false,
    });
    let fields = fields.collect();
    heap.structure(Struct { type_name, is_pointer, fields, string: None })
}

/// The context of a release `rel` of a chart `demo`.
pub(crate) fn context(heap: &mut Heap, json: &serde_json::Value) -> Value {
    let dot = heap.map(MapType::Values("chartutil.Values"));
    let values = values(heap, json);
    heap.set(dot, "Values", values);
    let release = heap.map(MapType::Any);
    for (key, text) in [("Name", "rel"), ("Namespace", "default"), ("Service", "Helm")] {
        let text = heap.string(text);
        heap.set(release, key, text);
    }
    heap.set(release, "IsInstall", Value::Bool(true));
    heap.set(release, "IsUpgrade", Value::Bool(false));
    heap.set(release, "Revision", Value::Int(1));
    heap.set(dot, "Release", Value::Map(release));
    let [name, version, app] = ["demo", "0.1.0", "1.2.3"].map(|text| heap.string(text));
    let chart = structure(heap, "struct", false, &[("Name", name), ("Version", version), ("AppVersion", app)]);
    heap.set(dot, "Chart", chart);
    let [full, major, minor, api] = ["v1.20.0", "1", "20", "batch/v1"].map(|text| heap.string(text));
    let fields = [("Version", full), ("Major", major), ("Minor", minor)];
    let fields = fields.map(|(name, value)| Field { name, json: name, omit_empty: false, value, is_interface: false });
    let kube = heap.structure(Struct {
        type_name: "chartutil.KubeVersion",
        is_pointer: false,
        fields: fields.to_vec(),
        string: Some(full),
    });
    let versions = heap.list(ListType::Named("chartutil.VersionSet"), vec![api]);
    let fields = [("KubeVersion", kube), ("APIVersions", versions)];
    let capabilities = structure(heap, "chartutil.Capabilities", true, &fields);
    heap.set(dot, "Capabilities", capabilities);
    let files = heap.map(MapType::Files("engine.files"));
    let content = heap.list(ListType::Bytes, b"l1\nl2\n".iter().copied().map(Value::Byte).collect());
    heap.set(files, "a.txt", content);
    heap.set(dot, "Files", Value::Map(files));
    let template = heap.map(MapType::Values("chartutil.Values"));
    for (key, text) in [("Name", FILE), ("BasePath", "demo/templates")] {
        let text = heap.string(text);
        heap.set(template, key, text);
    }
    heap.set(dot, "Template", Value::Map(template));
    Value::Map(dot)
}

/// Renders a template beside a file of helpers: what it prints, or why it cannot be rendered.
pub(crate) fn render(
    helm: Helm,
    template: &str,
    helpers: &str,
    json: &serde_json::Value,
    limits: Limits,
) -> Result<String, String> {
    let sources = [(FILE, template.as_bytes()), ("demo/templates/_helpers.tpl", helpers.as_bytes())];
    let program = Program::parse(helm, sources).map_err(|error| error.helm_message())?;
    let now = "2026-01-02T03:04:05Z".parse().expect("a time");
    let environment = Environment { helm, limits, entropy: Entropy::fixed(7, now), lookup: &NoCluster };
    let mut heap = Heap::with_limit(limits.heap);
    let dot = context(&mut heap, json);
    let mut render = Render::new(&program, heap, &environment);
    let printed = render.file(FILE, dot).map_err(|error| error.helm_message())?;
    Ok(String::from_utf8_lossy(&printed).into_owned())
}

/// The same with the newest Go and the usual limits.
pub(crate) fn render_simply(template: &str) -> Result<String, String> {
    render(Helm::new(4, 3, 1), template, "", &serde_json::json!({"a": {"b": 1, "c": [1, 2]}, "s": "text"}), LIMITS)
}
