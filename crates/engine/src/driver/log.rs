//! The end of a pod's log, without the Secrets that are known.

use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Api, LogParams};
use kube::{Client, ResourceExt as _};

/// How many lines are asked for at most; of what comes, the end is kept.
const LINES: i64 = 2000;
/// Shorter values are no secrets, and masking them would hide words.
const SHORTEST_SECRET: usize = 5;

/// Reads the end of the logs of all containers of a pod that have started.
pub(super) async fn read(client: &Client, namespace: &str, pod: &Pod, bytes: usize) -> Result<String, String> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let names = super::view::started_containers(pod);
    let mut text = String::new();
    for name in &names {
        let tail = tail(&pods, &pod.name_any(), name, bytes).await.map_err(|error| crate::error::chain(&error))?;
        if names.len() > 1 {
            text.push_str(&format!("== {name}\n"));
        }
        text.push_str(&tail);
    }
    Ok(keep_end(text, bytes))
}

async fn tail(pods: &Api<Pod>, pod: &str, container: &str, bytes: usize) -> Result<String, kube::Error> {
    let parameters =
        LogParams { container: Some(container.to_owned()), tail_lines: Some(LINES), ..LogParams::default() };
    let mut stream = Box::pin(pods.log_stream(pod, &parameters).await?);
    let mut kept = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).await.map_err(kube::Error::ReadEvents)?;
        if read == 0 {
            return Ok(String::from_utf8_lossy(&kept).into_owned());
        }
        kept.extend_from_slice(&buffer[..read]);
        // Cut now and then, so that memory is bounded and little is moved.
        if kept.len() > bytes * 2 + buffer.len() {
            kept.drain(..kept.len() - bytes);
        }
    }
}

/// The end of a text, from the beginning of a line on if there is one.
fn keep_end(text: String, bytes: usize) -> String {
    if text.len() <= bytes {
        return text;
    }
    let start = (text.len() - bytes..=text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len());
    let end = &text[start..];
    end.split_once('\n').map_or(end, |(_, lines)| lines).to_owned()
}

/// The values of Secrets, as far as they may be read.
pub(super) async fn known_secrets(
    client: &Client,
    namespace: &str,
    names: impl Iterator<Item = &String>,
) -> Vec<String> {
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let mut values = Vec::new();
    for name in names {
        // Who may not read a Secret cannot mask it either; its pod may still write it into its log.
        let Ok(Some(secret)) = secrets.get_opt(name).await else { continue };
        let found = secret.data.into_iter().flatten().filter_map(|(_, value)| String::from_utf8(value.0).ok());
        values.extend(found.filter(|value| value.trim().len() >= SHORTEST_SECRET));
    }
    values
}

/// A text without these values.
pub(super) fn mask(text: &str, values: &[String]) -> String {
    let mut values: Vec<&str> = values.iter().flat_map(|value| value.lines()).map(str::trim).collect();
    values.retain(|value| value.len() >= SHORTEST_SECRET);
    // The longest first, so that none is hidden by a part of it.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values.into_iter().fold(text.to_owned(), |text, value| text.replace(value, "***"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_in_whole_lines() {
        assert_eq!(keep_end("one\ntwo\nthree\n".to_owned(), 9), "three\n");
        assert_eq!(keep_end("short".to_owned(), 100), "short");
        assert_eq!(keep_end("ääää".to_owned(), 5), "ää");
    }

    #[test]
    fn known_secrets_are_masked() {
        let values =
            ["hunter2".to_owned(), "hunter2-longer".to_owned(), "abc".to_owned(), "line1-x\nline2-y\n".to_owned()];
        assert_eq!(mask("a hunter2-longer b hunter2 abc line2-y", &values), "a *** b *** abc ***");
    }
}
