//! What templates see: `.Values`, `.Release`, `.Chart`, `.Files`, `.Capabilities`, `.Subcharts` and `.Template`.

use super::RenderOptions;
use crate::package::{Package, PackageMetadata};
use crate::values::Values;
use jobwright_template::{Field, Heap, Helm, ListType, MapId, MapType, Numbers, Render, Struct, Value};
use std::collections::BTreeMap;

/// The contexts of a chart and of those in it, by their paths.
pub(super) struct Contexts {
    root: MapId,
    dots: BTreeMap<String, MapId>,
    values_type: &'static str,
}

impl Contexts {
    /// The context of the outermost chart, which all values are below.
    pub(super) fn root(&self) -> MapId {
        self.root
    }

    /// The context of a file, with its `.Template`.
    pub(super) fn enter(&self, render: &mut Render<'_>, owner: &str, file: &str) -> Option<Value> {
        let dot = *self.dots.get(owner)?;
        let values_type = self.values_type;
        render.prepare(|heap| {
            let template = heap.map(MapType::Values(values_type));
            for (key, text) in [("Name", file), ("BasePath", &format!("{owner}/templates"))] {
                let text = heap.string(text);
                heap.set(template, key, text);
            }
            heap.set(dot, "Template", Value::Map(template));
        });
        Some(Value::Map(dot))
    }
}

/// Builds the contexts.
pub(super) fn build(heap: &mut Heap, package: &Package, values: &Values, options: &RenderOptions<'_>) -> Contexts {
    let helm = options.helm;
    let imported = heap.import(&serde_json::Value::Object(values.clone()), Numbers::Integers);
    let shared = Shared { release: release(heap, options), capabilities: capabilities(heap, options), helm };
    let mut dots = BTreeMap::new();
    let values = match imported {
        Value::Map(map) => map,
        _ => heap.map(MapType::Any),
    };
    heap.retype(values, MapType::Values(helm.values_type()));
    let root = add(heap, package, package.name(), Some(values), &shared, true, &mut dots);
    heap.watch(root);
    Contexts { root, dots, values_type: helm.values_type() }
}

struct Shared {
    release: Value,
    capabilities: Value,
    helm: Helm,
}

fn add(
    heap: &mut Heap,
    package: &Package,
    path: &str,
    values: Option<MapId>,
    shared: &Shared,
    is_root: bool,
    dots: &mut BTreeMap<String, MapId>,
) -> MapId {
    let dot = heap.map(MapType::Values(shared.helm.values_type()));
    let chart = chart(heap, &package.metadata, is_root, shared.helm);
    let files = heap.map(MapType::Files("engine.files"));
    for file in &package.files {
        let content = heap.byte_list(&file.data);
        heap.set(files, &file.name, content);
    }
    let values = values.unwrap_or_else(|| heap.map(MapType::Values(shared.helm.values_type())));
    let subcharts = heap.map(MapType::Any);
    for (key, value) in [
        ("Chart", chart),
        ("Files", Value::Map(files)),
        ("Release", shared.release),
        ("Capabilities", shared.capabilities),
        ("Values", Value::Map(values)),
        ("Subcharts", Value::Map(subcharts)),
    ] {
        heap.set(dot, key, value);
    }
    for subchart in &package.dependencies {
        let inner = match heap.get(values, subchart.name().as_bytes()) {
            Some(Value::Map(inner)) => Some(inner),
            _ => None,
        };
        let path = format!("{path}/charts/{}", subchart.name());
        let inner = add(heap, subchart, &path, inner, shared, false, dots);
        heap.set(subcharts, subchart.name(), Value::Map(inner));
    }
    dots.insert(path.to_owned(), dot);
    dot
}

fn release(heap: &mut Heap, options: &RenderOptions<'_>) -> Value {
    let release = heap.map(MapType::Any);
    let [name, namespace, service] =
        [&options.release.name, &options.release.namespace, "Helm"].map(|text| heap.string(text));
    for (key, value) in [
        ("Name", name),
        ("Namespace", namespace),
        ("IsUpgrade", Value::Bool(options.release.is_upgrade)),
        ("IsInstall", Value::Bool(!options.release.is_upgrade)),
        ("Revision", Value::Int(options.release.revision)),
        ("Service", service),
    ] {
        heap.set(release, key, value);
    }
    Value::Map(release)
}

fn field(name: &'static str, json: &'static str, value: Value) -> Field {
    Field { name, json, omit_empty: !json.is_empty(), value, is_interface: false }
}

fn capabilities(heap: &mut Heap, options: &RenderOptions<'_>) -> Value {
    let is_new = options.helm.major >= 4;
    let name = |old: &'static str, new: &'static str| if is_new { new } else { old };
    let (major, minor) = options.capabilities.major_and_minor();
    let [full, major, minor] = [&options.capabilities.kube_version, &major, &minor].map(|text| heap.string(text));
    let plain =
        |name: &'static str, value: Value| Field { name, json: name, omit_empty: false, value, is_interface: false };
    let kube_version = heap.structure(Struct {
        type_name: name("chartutil.KubeVersion", "common.KubeVersion"),
        is_pointer: false,
        fields: vec![plain("Version", full), plain("Major", major), plain("Minor", minor)],
        string: Some(full),
    });
    let versions = options.capabilities.api_versions.iter().map(|version| heap.string(version)).collect();
    let versions = heap.list(ListType::Named(name("chartutil.VersionSet", "common.VersionSet")), versions);
    let go = match options.helm {
        Helm { major: 3, minor: 17, .. } => "go1.23.7",
        _ => "go1.26.8",
    };
    let [version, empty, go] = [&format!("v{}", options.helm), "", go].map(|text| heap.string(text));
    let build = heap.structure(Struct {
        type_name: "version.BuildInfo",
        is_pointer: false,
        fields: vec![
            field("Version", "version", version),
            field("GitCommit", "git_commit", empty),
            field("GitTreeState", "git_tree_state", empty),
            field("GoVersion", "go_version", go),
        ],
        string: None,
    });
    heap.structure(Struct {
        type_name: name("chartutil.Capabilities", "common.Capabilities"),
        is_pointer: true,
        fields: vec![plain("KubeVersion", kube_version), plain("APIVersions", versions), plain("HelmVersion", build)],
        string: None,
    })
}

fn texts(heap: &mut Heap, texts: &[String]) -> Value {
    let items = texts.iter().map(|text| heap.string(text)).collect();
    heap.list(ListType::Texts, items)
}

fn chart(heap: &mut Heap, metadata: &PackageMetadata, is_root: bool, helm: Helm) -> Value {
    let annotations = heap.map(MapType::Texts);
    for (key, text) in &metadata.annotations {
        let text = heap.string(text);
        heap.set(annotations, key, text);
    }
    let pointer = |heap: &mut Heap, type_name: &'static str, fields: Vec<Field>| {
        heap.structure(Struct { type_name, is_pointer: true, fields, string: None })
    };
    let mut maintainers = Vec::new();
    for maintainer in &metadata.maintainers {
        let [name, email, url] = [&maintainer.name, &maintainer.email, &maintainer.url].map(|text| heap.string(text));
        let fields = vec![field("Name", "name", name), field("Email", "email", email), field("URL", "url", url)];
        maintainers.push(pointer(heap, "chart.Maintainer", fields));
    }
    let mut dependencies = Vec::new();
    for requirement in &metadata.dependencies {
        let [name, version, repository, condition, alias] = [
            &requirement.name,
            &requirement.version,
            &requirement.repository,
            &requirement.condition,
            &requirement.alias,
        ]
        .map(|text| heap.string(text));
        let tags = texts(heap, &requirement.tags);
        let imports = serde_json::Value::Array(requirement.import_values.clone());
        let imports = heap.import(&imports, Numbers::Floats);
        let always = |name, json, value| Field { omit_empty: false, ..field(name, json, value) };
        let fields = vec![
            always("Name", "name", name),
            field("Version", "version", version),
            always("Repository", "repository", repository),
            field("Condition", "condition", condition),
            field("Tags", "tags", tags),
            field("Enabled", "enabled", Value::Bool(requirement.enabled)),
            field("ImportValues", "import-values", imports),
            field("Alias", "alias", alias),
        ];
        dependencies.push(pointer(heap, "chart.Dependency", fields));
    }
    let mut text = |text: &str| heap.string(text);
    let [name, home, version, description, icon] =
        [&metadata.name, &metadata.home, &metadata.version, &metadata.description, &metadata.icon].map(|it| text(it));
    let [api_version, condition, tags, app_version, kube_version, kind] = [
        &metadata.api_version,
        &metadata.condition,
        &metadata.tags,
        &metadata.app_version,
        &metadata.kube_version,
        &metadata.kind,
    ]
    .map(|it| text(it));
    let (sources, keywords) = (texts(heap, &metadata.sources), texts(heap, &metadata.keywords));
    let maintainers = heap.list(ListType::Named("[]*chart.Maintainer"), maintainers);
    let dependencies = heap.list(ListType::Named("[]*chart.Dependency"), dependencies);
    let mut fields = vec![
        field("Name", "name", name),
        field("Home", "home", home),
        field("Sources", "sources", sources),
        field("Version", "version", version),
        field("Description", "description", description),
        field("Keywords", "keywords", keywords),
        field("Maintainers", "maintainers", maintainers),
        field("Icon", "icon", icon),
        field("APIVersion", "apiVersion", api_version),
        field("Condition", "condition", condition),
        field("Tags", "tags", tags),
        field("AppVersion", "appVersion", app_version),
        field("Deprecated", "deprecated", Value::Bool(metadata.deprecated)),
        field("Annotations", "annotations", Value::Map(annotations)),
        field("KubeVersion", "kubeVersion", kube_version),
        field("Dependencies", "dependencies", dependencies),
        field("Type", "type", kind),
    ];
    if helm.major >= 4 {
        let map = heap.map(MapType::Any);
        for field in &fields {
            heap.set(map, field.name, field.value);
        }
        heap.set(map, "IsRoot", Value::Bool(is_root));
        return Value::Map(map);
    }
    let inner = Struct { type_name: "chart.Metadata", is_pointer: false, fields: fields.clone(), string: None };
    let inner = heap.structure(inner);
    fields.push(Field { omit_empty: false, ..field("IsRoot", "IsRoot", Value::Bool(is_root)) });
    // Its fields are reached with and without its name.
    fields.push(field("Metadata", "", inner));
    heap.structure(Struct {
        type_name: "struct { chart.Metadata; IsRoot bool }",
        is_pointer: false,
        fields,
        string: None,
    })
}
