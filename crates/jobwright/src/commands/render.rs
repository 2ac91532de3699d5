//! `jobwright render`: what a chart's templates print, as `helm template` prints it.

use crate::arguments;
use crate::failure::{ErrorExt as _, Failure, Kind};
use anyhow::Context as _;
use jobwright_chart::{
    Assignment, Capabilities, Entropy, LIMITS, Lookup, NoCluster, Objects, Package, Release, RenderError,
    RenderOptions, Shown, UserValues, render,
};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &arguments::Render) -> Result<(), Failure> {
    let (name, chart) = match arguments.names.as_slice() {
        [name, chart] => (name.as_str(), chart.as_str()),
        [chart] => ("release-name", chart.as_str()),
        _ => return Err(Failure::new(Kind::Usage, "name a chart: its directory or its .tgz")),
    };
    let package = load(chart)?;
    let given = user_values(arguments)?.merged().or_fail(Kind::Usage)?;
    let mut capabilities = Capabilities::of(arguments.helm);
    if let Some(version) = &arguments.kube_version {
        capabilities = capabilities.with_kube_version(version).map_err(|message| Failure::new(Kind::Usage, message))?;
    }
    capabilities.api_versions.extend(arguments.api_versions.iter().cloned());
    let objects = arguments.lookup.as_deref().map(read_objects).transpose()?;
    let lookup: &dyn Lookup = match &objects {
        Some(objects) => objects,
        None => &NoCluster,
    };
    let options = RenderOptions {
        helm: arguments.helm,
        release: Release {
            name: name.to_owned(),
            namespace: arguments.namespace.clone(),
            revision: arguments.revision,
            is_upgrade: arguments.is_upgrade,
        },
        capabilities,
        entropy: entropy(arguments.seed)?,
        lookup,
        limits: LIMITS,
        skip_schema: arguments.skip_schema_validation,
    };
    let rendered = render(&package, &given, &options).map_err(refused)?;
    for dropped in &rendered.split.dropped {
        crate::output::note(&format!(
            "note: {} drops {} `{}`, because Helm knows no such hook",
            dropped.source, dropped.kind, dropped.name
        ));
    }
    let shown = Shown {
        crds: arguments.include_crds,
        no_hooks: arguments.no_hooks,
        skip_tests: arguments.skip_tests,
        only: arguments.show_only.clone(),
    };
    let text = rendered.to_text(&shown).map_err(|message| Failure::new(Kind::Usage, message))?;
    std::io::stdout().write_all(text.as_bytes()).context("cannot write to stdout").or_fail(Kind::Internal)
}

fn load(chart: &str) -> Result<Package, Failure> {
    let path = Path::new(chart);
    if !path.exists() && (chart.contains("://") || !chart.starts_with(['.', '/'])) {
        let failure = Failure::new(Kind::Usage, format!("there is no chart at {chart}"));
        return Err(failure.hint(format!("charts are read from files: run `helm pull {chart}` and name the .tgz")));
    }
    Package::load(path).or_fail(Kind::Render)
}

fn refused(error: RenderError) -> Failure {
    let hint = match &error {
        RenderError::Execute(error) => error.frames().last().map(|frame| frame.location.clone()),
        _ => None,
    };
    let failure = Failure::of(Kind::Render, error);
    match hint {
        Some(location) => failure.hint(format!("the template failed at {location}")),
        None => failure,
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut data = Vec::new();
        std::io::stdin().read_to_end(&mut data).context("cannot read stdin").or_fail(Kind::Usage)?;
        return Ok(data);
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display())).or_fail(Kind::Usage)
}

fn user_values(arguments: &arguments::Render) -> Result<UserValues, Failure> {
    let mut given = UserValues::default();
    for path in &arguments.values {
        given.files.push((path.clone(), read(path)?));
    }
    given.assignments.extend(arguments.set_json.iter().cloned().map(Assignment::Json));
    given.assignments.extend(arguments.set.iter().cloned().map(Assignment::Typed));
    given.assignments.extend(arguments.set_string.iter().cloned().map(Assignment::Text));
    for assignment in &arguments.set_file {
        let mut files = Vec::new();
        for name in Assignment::files_of(assignment) {
            let content = read(&PathBuf::from(&name))?;
            files.push((name, String::from_utf8_lossy(&content).into_owned()));
        }
        given.assignments.push(Assignment::Files(assignment.clone(), files));
    }
    given.assignments.extend(arguments.set_literal.iter().cloned().map(Assignment::Literal));
    Ok(given)
}

fn read_objects(path: &Path) -> Result<Objects, Failure> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Objects::read(&text).map_err(|message| Failure::new(Kind::Usage, format!("{}: {message}", path.display())))
}

/// Chance from the system; with a seed, chance and time are always the same.
fn entropy(seed: Option<u64>) -> Result<Entropy, Failure> {
    if let Some(seed) = seed {
        return Ok(Entropy::fixed(seed, jiff::Timestamp::UNIX_EPOCH));
    }
    #[expect(clippy::disallowed_methods, reason = "the wall clock comes in here")]
    let now = jiff::Timestamp::now();
    let mut entropy = Entropy::fixed(0, now);
    let mut system = std::fs::File::open("/dev/urandom").context("cannot open /dev/urandom").or_fail(Kind::Internal)?;
    system.read_exact(&mut entropy.seed).context("cannot read /dev/urandom").or_fail(Kind::Internal)?;
    entropy.zone = jiff::tz::TimeZone::system();
    Ok(entropy)
}
