//! Which charts within a chart are enabled, under which names, and what they hand up (helm v3.17
//! `pkg/chartutil/dependencies.go`).

use crate::package::{Package, Requirement};
use crate::values::{Values, at_path, coalesce, merge_values, table, tables_keeping_nulls};
use crate::version::{Constraint, Version};
use serde_json::Value;

/// Resolves aliases, conditions, tags and imports of values; `Err` has Helm's message.
pub(crate) fn process(package: &mut Package, given: &Values) -> Result<(), String> {
    enable(package, given, "")?;
    import(package)
}

/// Whether a constraint takes a version; one that cannot be read takes none.
pub(crate) fn is_compatible(constraint: &str, version: &str) -> bool {
    let constraint: Result<Constraint, _> = constraint.parse();
    let version: Result<Version, _> = version.parse();
    matches!((constraint, version), (Ok(constraint), Ok(version)) if constraint.takes(&version))
}

fn is_meant(requirement: &Requirement, package: &Package) -> bool {
    package.name() == requirement.name && is_compatible(&requirement.version, &package.metadata.version)
}

fn enable(package: &mut Package, given: &Values, path: &str) -> Result<(), String> {
    if package.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let requirements = &mut package.metadata.dependencies;
    let present = std::mem::take(&mut package.dependencies);
    let is_named = |subchart: &&Package| requirements.iter().any(|requirement| is_meant(requirement, subchart));
    // Charts that nothing asks for come first, as they are.
    let mut found: Vec<Package> = present.iter().filter(|subchart| !is_named(subchart)).cloned().collect();
    for requirement in requirements.iter_mut() {
        if let Some(subchart) = present.iter().find(|subchart| is_meant(requirement, subchart)) {
            let mut subchart = subchart.clone();
            if !requirement.alias.is_empty() {
                subchart.metadata.name.clone_from(&requirement.alias);
            }
            found.push(subchart);
        }
        if !requirement.alias.is_empty() {
            requirement.name.clone_from(&requirement.alias);
        }
        requirement.enabled = true;
    }
    package.dependencies = found;
    let values = coalesce(package, given.clone())?;
    tags(&mut package.metadata.dependencies, &values);
    conditions(&mut package.metadata.dependencies, &values, path);
    let disabled: Vec<String> = package
        .metadata
        .dependencies
        .iter()
        .filter(|requirement| !requirement.enabled)
        .map(|requirement| requirement.name.clone())
        .collect();
    package.dependencies.retain(|subchart| !disabled.iter().any(|name| name == subchart.name()));
    package.metadata.dependencies.retain(|requirement| !disabled.contains(&requirement.name));
    for subchart in &mut package.dependencies {
        let path = format!("{path}{}.", subchart.name());
        enable(subchart, &values, &path)?;
    }
    Ok(())
}

fn tags(requirements: &mut [Requirement], values: &Values) {
    let Some(tags) = table(values, "tags") else { return };
    for requirement in requirements {
        let says = |wanted: bool| requirement.tags.iter().any(|tag| tags.get(tag) == Some(&Value::Bool(wanted)));
        requirement.enabled = says(true) || !says(false);
    }
}

fn conditions(requirements: &mut [Requirement], values: &Values, path: &str) {
    for requirement in requirements {
        let conditions = requirement.condition.trim().split(',').filter(|condition| !condition.is_empty());
        let decided = conditions
            .into_iter()
            .find_map(|condition| at_path(values, &format!("{path}{condition}")).and_then(Value::as_bool));
        if let Some(decided) = decided {
            requirement.enabled = decided;
        }
    }
}

/// Takes over values of the charts in it.
fn import(package: &mut Package) -> Result<(), String> {
    for subchart in &mut package.dependencies {
        import(subchart)?;
    }
    if package.metadata.dependencies.is_empty() {
        return Ok(());
    }
    let values = merge_values(package, Values::new())?;
    let mut imported = Values::new();
    for requirement in &package.metadata.dependencies {
        for import in &requirement.import_values {
            let (child, parent) = match import {
                Value::String(name) => (format!("exports.{name}"), "."),
                Value::Object(pair) => {
                    let text = |key: &str| pair.get(key).and_then(Value::as_str);
                    let Some((child, parent)) = text("child").zip(text("parent")) else {
                        return Err("import-values needs the texts child and parent".to_owned());
                    };
                    (child.to_owned(), parent)
                }
                _ => continue,
            };
            let Some(found) = table(&values, &format!("{}.{child}", requirement.name)) else { continue };
            tables_keeping_nulls(&mut imported, &placed(parent, found.clone()));
        }
    }
    let mut values = values;
    tables_keeping_nulls(&mut values, &imported);
    package.values = values;
    Ok(())
}

/// A table at a path.
fn placed(path: &str, values: Values) -> Values {
    if path == "." {
        return values;
    }
    path.rsplit('.').fold(values, |inner, key| Values::from_iter([(key.to_owned(), Value::Object(inner))]))
}
