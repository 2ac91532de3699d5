//! The end of a pod's log.

use crate::call::CALL_LIMIT;
use crate::ledger::escaped_size;
use crate::mask::{Cut, Mask};
use crate::retry::Retry;
use futures::AsyncReadExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams};
use kube::{Client, ResourceExt as _};
use std::time::Duration;
use tokio::time::Instant;

/// How many lines are requested at most; the end of what comes is kept.
const LINES: i64 = 2000;

/// How long a log is asked for: its node may be gone.
const PATIENCE: Duration = Duration::from_mins(1);

/// Reads the end of the logs of all containers of a pod that have started, without what the mask hides.
pub(super) async fn read(
    client: &Client,
    namespace: &str,
    pod: &Pod,
    bytes: usize,
    mask: &Mask,
    retry: &Retry,
) -> Result<String, String> {
    let pods = Api::<Pod>::namespaced(client.clone(), namespace);
    let names = super::view::started_containers(pod);
    let retry = retry.clone().within(PATIENCE);
    let doing = format!("read the log of pod `{}`", pod.name_any());
    let reading = async {
        let mut text = String::new();
        for name in &names {
            let (tail, cut) =
                retry.call(&doing, || tail(&pods, pod, name, bytes)).await.map_err(|error| error.whole_message())?;
            if names.len() > 1 {
                text.push_str(&format!("== {name}\n"));
            }
            text.push_str(&mask.apply_to_bytes(&tail, cut));
        }
        Ok(keep_end(text, bytes))
    };
    // A log that does not end is not waited for after a cancellation.
    retry.wait(reading).await.unwrap_or_else(|| Err(format!("cannot {doing}: it did not end in time")))
}

/// The end of a container's log, and where it was cut. One that does not end within a deadline counts as far as it was
/// read.
async fn tail(pods: &Api<Pod>, pod: &Pod, container: &str, bytes: usize) -> kube::Result<(Vec<u8>, Cut)> {
    let parameters =
        LogParams { container: Some(container.to_owned()), tail_lines: Some(LINES), ..LogParams::default() };
    let mut stream = Box::pin(pods.log_stream(&pod.name_any(), &parameters).await?);
    let mut kept = Vec::new();
    let mut cut = Cut::END;
    let mut buffer = vec![0; 16 * 1024];
    let end = Instant::now() + CALL_LIMIT;
    while let Ok(read) = tokio::time::timeout_at(end, stream.read(&mut buffer)).await {
        let read = read.map_err(kube::Error::ReadEvents)?;
        if read == 0 {
            cut.end = false;
            break;
        }
        kept.extend_from_slice(&buffer[..read]);
        // Cut now and then, so that memory is bounded and little is moved.
        if kept.len() > bytes * 2 + buffer.len() {
            kept.drain(..kept.len() - bytes);
            cut.start = true;
        }
    }
    Ok((kept, cut))
}

/// The end of a text that takes this many bytes once it is written; in whole lines, unless the last one is longer.
pub(crate) fn keep_end(text: String, bytes: usize) -> String {
    if escaped_size(&text) <= bytes {
        return text;
    }
    let mut room = bytes;
    let mut start = text.len();
    for (index, letter) in text.char_indices().rev() {
        let size = escaped_size(letter.encode_utf8(&mut [0; 4]));
        if size > room {
            break;
        }
        room -= size;
        start = index;
    }
    let end = &text[start..];
    let lines = end.split_once('\n').map_or("", |(_, lines)| lines);
    if lines.is_empty() { end } else { lines }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_in_whole_lines_unless_the_last_one_is_longer() {
        assert_eq!(keep_end("one\ntwo\nthree\n".to_owned(), 9), "three\n");
        assert_eq!(keep_end("first\nvery long line\n".to_owned(), 8), "g line\n");
        assert_eq!(keep_end("\u{1}".repeat(100), 13), "\u{1}\u{1}");
        assert_eq!(keep_end("short".to_owned(), 100), "short");
        assert_eq!(keep_end("ääää".to_owned(), 5), "ää");
    }
}
