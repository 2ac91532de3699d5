//! Charts of scenarios: a short notation for the usual objects, and the directories that Helm reads.

mod manifest;
mod notation;

pub(crate) use notation::RawObject;

use crate::error::Error;
use manifest::manifest;
use notation::{Object, Template};
use std::path::Path;

/// A chart named `c`, with templates t0.yaml, t1.yaml … in order.
#[derive(Debug)]
pub struct Chart {
    templates: Vec<Template>,
}

/// What stands for itself in charts and commands, and what is put in its place.
#[derive(Clone, Debug)]
pub struct Places {
    /// `$NS`
    pub namespace: String,
    /// `$IMG`
    pub image: String,
}

impl Places {
    /// The text with everything in its place.
    pub fn fill(&self, text: &str) -> String {
        text.replace("$NS", &self.namespace).replace("$IMG", &self.image)
    }
}

impl Chart {
    pub(crate) fn new(templates: Vec<Template>) -> Self {
        Self { templates }
    }

    /// Writes the chart into a directory, which is made.
    pub fn write(&self, directory: &Path, places: &Places) -> Result<(), Error> {
        write(&directory.join("Chart.yaml"), "apiVersion: v2\nname: c\nversion: 0.1.0\n")?;
        let mut number = 0;
        for template in &self.templates {
            let (path, text) = match template {
                Template::File { path, text } => (path.clone(), text.clone()),
                Template::Object(object) => (next(&mut number), json(object)?),
                Template::Text(text) => (next(&mut number), text.clone()),
            };
            write(&directory.join(path), &places.fill(&text))?;
        }
        Ok(())
    }
}

fn next(number: &mut usize) -> String {
    let path = format!("templates/t{number}.yaml");
    *number += 1;
    path
}

fn json(object: &Object) -> Result<String, Error> {
    serde_json::to_string(&manifest(object)).map_err(Error::json("a manifest"))
}

/// Writes a file and the directories above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let doing = || Error::io(format!("write `{}`", path.display()));
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(doing())?;
    }
    std::fs::write(path, text).map_err(doing())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(yaml: &str) -> Vec<(String, String)> {
        let raw: Vec<RawObject> = serde_saphyr::from_str(yaml).unwrap();
        let chart = Chart::new(raw.into_iter().map(|object| object.try_into().unwrap()).collect());
        let directory = tempfile::tempdir().unwrap();
        chart.write(directory.path(), &Places { namespace: "ns1".to_owned(), image: "img:1".to_owned() }).unwrap();
        let mut files = Vec::new();
        for folder in ["templates", "crds"] {
            for entry in std::fs::read_dir(directory.path().join(folder)).into_iter().flatten() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(directory.path()).unwrap().display().to_string();
                files.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
        files.sort();
        files
    }

    #[test]
    fn objects_become_templates_in_order() {
        let files = files("[{configmap: m}, {path: crds/k.yaml, text: 'group: $NS.example'}, {text: 'a: $IMG'}]");
        let expected = [
            ("crds/k.yaml", "group: ns1.example"),
            ("templates/t0.yaml", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"v":"1"}}"#),
            ("templates/t1.yaml", "a: img:1"),
        ];
        let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn a_job_never_restarts_and_ends_quickly() {
        let text = &files("[{job: x, hook: pre-install, ttl: 0}]")[0].1;
        let expected = concat!(
            r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x","annotations":{"helm.sh/hook":"pre-install"}},"#,
            r#""spec":{"backoffLimit":0,"ttlSecondsAfterFinished":0,"template":{"spec":{"restartPolicy":"Never","#,
            r#""terminationGracePeriodSeconds":1,"containers":[{"name":"c","image":"img:1","#,
            r#""imagePullPolicy":"IfNotPresent","command":["sh","-c","echo hi"]}]}}}}"#
        );
        assert_eq!(text, expected);
    }
}
