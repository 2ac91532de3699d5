//! Batches over HTTP, to a server that misbehaves on purpose; and series for remote write.

use super::server::{Reply, Server, good};
use super::stage::{PATHS, PLANTED, Stage, backfill, compare, read_lines};
use base64::Engine as _;
use jobwright_jobs::backfill::{
    Address, Auth, Backfill, CheckpointPlace, Compression, Ending, Error, Meter, Patience, Place, Setting, Summary,
    Task, TlsSources, serve_metrics,
};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A backfill that tries again soon.
pub(crate) fn quick() -> Backfill {
    let millisecond = Duration::from_millis(1);
    let patience = Patience { first: millisecond, longest: 5 * millisecond, total: Duration::from_secs(20) };
    Backfill { patience, ..backfill() }
}

pub(crate) fn to(address: &str) -> Task {
    Task { backfill: quick(), ..Task::new(address.parse::<Address>().unwrap()) }
}

pub(crate) async fn run(stage: &Stage, task: &Task) -> Result<Summary, Error> {
    let result = task
        .run(Setting {
            surroundings: stage.surroundings(),
            namespace: "default".to_owned(),
            holder: format!("test {}", fastrand::u64(..)),
            stdout: Box::new(std::io::sink()),
            cancellation: CancellationToken::new(),
        })
        .await;
    let told = format!("{result:?} {:?} {task:?}", stage.notes());
    assert!(!told.contains(PLANTED), "a secret was told: {told}");
    result
}

async fn expect_all(stage: &Stage, server: &Server) {
    let mut arrived = BTreeMap::new();
    for body in server.accepted().values() {
        arrived.extend(read_lines(&String::from_utf8(body.clone()).unwrap()));
    }
    compare(&arrived, &stage.expected(&PATHS).await, "in the end");
}

#[tokio::test]
async fn a_server_that_misbehaves_in_every_way_gets_everything() {
    let stage = Stage::new(40).await;
    let server = Server::start(|number, _| match number % 7 {
        1 => Reply::Answer(503, "", "come back".to_owned()),
        2 => Reply::Reset,
        3 => Reply::Half,
        4 => Reply::Answer(429, "Retry-After: 0\r\n", String::new()),
        5 => Reply::Answer(408, "", String::new()),
        _ => good(),
    })
    .await;
    let summary = run(&stage, &to(&format!("http://127.0.0.1:{}/in?tenant=7", server.port))).await.unwrap();
    assert!(summary.complete, "{summary:?}");
    assert!(summary.batches.retried >= 20, "{:?}", summary.batches);
    expect_all(&stage, &server).await;
    let first = &server.received()[0].headers;
    assert_eq!(first["content-type"], "application/x-ndjson");
    assert!(first["idempotency-key"].starts_with(&format!("{}-", first["x-jobwright-batch"])), "{first:?}");
    assert!(first["idempotency-key"].starts_with(&format!("{}/", summary.run)));
    assert_eq!(summary.sink, format!("http://127.0.0.1:{}/in", server.port), "a query may be secret");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_again() {
    let stage = Stage::new(3).await;
    let server =
        Server::start(|number, _| if number < 3 { Reply::Slow(Duration::from_mins(10)) } else { good() }).await;
    let address = format!("http://127.0.0.1:{}/", server.port).parse().unwrap();
    let transport = jobwright_jobs::backfill::Transport::new(TlsSources::default());
    let clock = stage.surroundings().clock;
    let sink = jobwright_jobs::backfill::HttpSink::new(address, Compression::None, transport, None, clock);
    let sink = std::sync::Arc::new(sink.attempt_limit(Duration::from_millis(100)));
    let summary = quick().run(stage.surroundings(), sink, None, CancellationToken::new()).await.unwrap();
    assert!(summary.complete && summary.batches.retried >= 2, "{summary:?}");
}

#[tokio::test]
async fn what_is_refused_is_told_with_the_status_and_the_first_line_and_without_the_token() {
    let stage = Stage::new(40).await;
    let server = Server::start(|number, request| match number {
        3 => {
            let token = request.headers["authorization"].clone();
            let encoded = base64::engine::general_purpose::STANDARD.encode(&token);
            Reply::Answer(422, "", format!("\r\nno tenant for {token} here, {encoded}\nsecond line"))
        }
        _ => good(),
    })
    .await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{PLANTED}-token\n")).unwrap();
    let auth = Some(Auth { header: None, secret: Place::File(file.path().to_owned()) });
    let summary = run(&stage, &Task { auth, ..to(&format!("http://127.0.0.1:{}/", server.port)) }).await.unwrap();
    assert_eq!((summary.ending(), summary.batches.failed), (Ending::Partial, 1));
    let errors: Vec<_> = summary.kinds.iter().flat_map(|kind| &kind.errors).collect();
    assert_eq!(errors[0].status, Some(422));
    let told = "the sink answered 422 Unprocessable Entity: no tenant for Bearer (removed) here, ";
    let rest = errors[0].message.strip_prefix(told).unwrap();
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("Bearer {PLANTED}-token"));
    let common = encoded.bytes().zip(rest.bytes()).take_while(|(one, other)| one == other).count();
    assert!(rest.contains("(removed)") && common <= 10, "{rest} has more of {encoded} than the scheme");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_is_replaced_while_it_runs_is_used() {
    for in_secret in [false, true] {
        let stage = Stage::new(40).await;
        let secret = |token: &str| {
            let value = format!("{PLANTED}-{token}");
            serde_json::json!({"metadata": {"name": "sink"}, "stringData": {"key": value}})
        };
        stage.create("v1", "Secret", secret("one")).await;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("{PLANTED}-one")).unwrap();
        let (path, stranger) = (file.path().to_owned(), stage.stranger());
        let runtime = tokio::runtime::Handle::current();
        let server = Server::start(move |number, request| {
            if number == 4 {
                std::fs::write(&path, format!("{PLANTED}-two")).unwrap();
                let secrets = kube::Api::<k8s_openapi::api::core::v1::Secret>::default_namespaced(stranger.clone());
                let patch = kube::api::Patch::Merge(secret("two"));
                let replaced = async move {
                    secrets.patch("sink", &kube::api::PatchParams::default(), &patch).await.unwrap();
                };
                tokio::task::block_in_place(|| runtime.block_on(replaced));
            }
            let wanted = if number < 4 { "one" } else { "two" };
            match request.headers.get("x-api-key") {
                Some(key) if *key == format!("{PLANTED}-{wanted}") => good(),
                _ => Reply::Answer(401, "", "who are you".to_owned()),
            }
        })
        .await;
        let place = if in_secret {
            Place::Secret { name: "sink".to_owned(), key: "key".to_owned() }
        } else {
            Place::File(file.path().to_owned())
        };
        let auth = Some(Auth { header: Some("X-Api-Key".parse().unwrap()), secret: place });
        let mut task = Task { auth, ..to(&format!("http://127.0.0.1:{}/", server.port)) };
        task.backfill.kinds = vec!["configmaps".into()];
        let summary = run(&stage, &task).await.unwrap();
        assert!(summary.complete, "{summary:?}");
        let arrived = server.accepted().into_values().flatten().collect();
        compare(&read_lines(&String::from_utf8(arrived).unwrap()), &stage.expected(&PATHS[..1]).await, "in the end");
        if in_secret {
            let needs = task.needs(&stage.stranger(), "default", &stage.retry()).await.unwrap();
            assert!(needs.secrets.contains("sink"));
        }
    }
}

#[tokio::test]
async fn lines_are_compressed_on_the_way() {
    let stage = Stage::new(12).await;
    for (compression, encoding) in [(Compression::Zstd, "zstd"), (Compression::Gzip, "gzip")] {
        let server = Server::start(|_, _| good()).await;
        let task = Task { compression: Some(compression), ..to(&format!("http://127.0.0.1:{}/", server.port)) };
        assert!(run(&stage, &task).await.unwrap().complete);
        let mut arrived = BTreeMap::new();
        for request in server.received() {
            assert_eq!(request.headers["content-encoding"], encoding);
            let mut text = String::new();
            match compression {
                Compression::Zstd => text = String::from_utf8(zstd::decode_all(&request.body[..]).unwrap()).unwrap(),
                _ => drop(flate2::read::GzDecoder::new(&request.body[..]).read_to_string(&mut text).unwrap()),
            }
            assert!(!text.contains(PLANTED));
            arrived.extend(read_lines(&text));
        }
        compare(&arrived, &stage.expected(&PATHS).await, encoding);
    }
}

#[tokio::test]
async fn series_arrive_by_remote_write() {
    let stage = Stage::new(12).await;
    let server =
        Server::start(|number, _| if number == 2 { Reply::Answer(500, "", String::new()) } else { good() }).await;
    let task = to(&format!("remote-write:http://127.0.0.1:{}/api/v1/write", server.port));
    let summary = run(&stage, &task).await.unwrap();
    assert!(summary.complete, "{summary:?}");
    assert_eq!(summary.total().sent, 12 + 3 * 4);
    let mut text = String::new();
    for body in server.accepted().values() {
        let message = snap::raw::Decoder::new().decompress_vec(body).unwrap();
        text.push_str(&String::from_utf8_lossy(&message));
    }
    assert!(!text.contains(PLANTED));
    for part in ["cloudzero_configmap_labels", "cloudzero_configmap_annotations", "cloudzero_pod_labels", "label_app"] {
        assert!(text.contains(part), "{part}");
    }
    let headers = &server.received()[0].headers;
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["content-encoding"], "snappy");
    assert_eq!(headers["x-prometheus-remote-write-version"], "0.1.0");
}

#[tokio::test]
async fn a_token_that_is_not_there_or_a_sink_that_is_gone_ends_the_run_in_the_end() {
    let stage = Stage::new(3).await;
    let patience = Patience { total: Duration::from_millis(20), ..quick().patience };
    let backfill = Backfill { patience, ..quick() };
    let auth = Some(Auth { header: None, secret: Place::File("/nowhere/token".into()) });
    let task = Task { backfill: backfill.clone(), auth, ..to("http://127.0.0.1:9/") };
    let summary = run(&stage, &task).await.unwrap();
    assert_eq!(summary.ending(), Ending::Failed);
    assert!(summary.stopped.as_ref().unwrap().contains("cannot read `/nowhere/token`"), "{summary:?}");
    let summary = run(&stage, &Task { backfill, ..to("http://127.0.0.1:9/") }).await.unwrap();
    assert_eq!(summary.ending(), Ending::Failed);
    assert!(summary.stopped.as_ref().unwrap().contains("onnection refused"), "{summary:?}");
}

#[tokio::test]
async fn metrics_are_served_while_it_runs() {
    let stage = Stage::new(6).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let meter = Meter::new();
    let serving = tokio::spawn(serve_metrics(listener, meter.clone()));
    let sink = super::stage::Collector::new(|_| super::stage::Deed::Take);
    let mut surroundings = stage.surroundings();
    surroundings.meter = meter;
    backfill().run(surroundings, sink, None, CancellationToken::new()).await.unwrap();
    let ask = |path: &'static str| async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    };
    let text = ask("/metrics").await;
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("application/openmetrics-text"), "{text}");
    for line in ["objects_sent_total{kind=\"configmaps\"} 6", "batches_total{result=\"sent\"} 4", "kinds_running 0"] {
        assert!(text.contains(&format!("jobwright_backfill_{line}")), "{line} is not in\n{text}");
    }
    assert!(ask("/").await.starts_with("HTTP/1.1 404"));
    serving.abort();
}

/// What a server has that takes every idempotency key once and answers the same for every further request with it.
fn taken_once(server: &Server) -> BTreeMap<String, serde_json::Value> {
    let mut bodies: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for request in server.received().into_iter().filter(|request| request.accepted) {
        bodies.entry(request.headers["idempotency-key"].clone()).or_insert(request.body);
    }
    let text: Vec<u8> = bodies.into_values().flatten().collect();
    read_lines(&String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_batch_with_other_content_has_another_idempotency_key_after_the_snapshot_expired() {
    // The list resumes at a later snapshot, or has to start over.
    for page_size in [10, 500] {
        let stage = Stage::new(30).await;
        let script = |number, _: &_| if number == 4 { Reply::Slow(Duration::from_hours(1)) } else { good() };
        let server = Server::start(script).await;
        let directory = tempfile::tempdir().unwrap();
        let mut task = to(&format!("http://127.0.0.1:{}/", server.port));
        task.backfill.kinds = vec!["configmaps".into()];
        task.backfill.page_size = page_size;
        task.checkpoint = Some(CheckpointPlace::File(directory.path().join("checkpoint")));
        // The fourth batch arrives, but the process dies before it knows.
        tokio::select! {
            summary = run(&stage, &task) => panic!("it cannot have ended: {summary:?}"),
            () = async { while server.received().len() < 4 { tokio::time::sleep(Duration::from_millis(1)).await; } } => {}
        }
        for index in 21..25 {
            stage.delete_map(&format!("map-{index:03}")).await;
        }
        stage.drydock.compact();
        let summary = run(&stage, &task).await.unwrap();
        assert!(summary.complete && summary.resumed && summary.total().expired == 1, "{summary:?}");
        let taken = taken_once(&server);
        for (key, object) in stage.expected(&PATHS[..1]).await {
            assert_eq!(taken.get(&key), Some(&object), "{key} with pages of {page_size}");
        }
    }
}

#[tokio::test]
async fn a_parameter_of_the_address_that_a_sink_repeats_is_not_shown() {
    let stage = Stage::new(4).await;
    let server =
        Server::start(|_, _| Reply::Answer(400, "", "no tenant tok%2Fen-seven or tok/en-seven".to_owned())).await;
    let summary = run(&stage, &to(&format!("http://127.0.0.1:{}/in?token=tok%2Fen-seven", server.port))).await.unwrap();
    let told = serde_json::to_string(&summary).unwrap();
    assert!(told.contains("no tenant (removed) or (removed)") && !told.contains("seven"), "{told}");
    assert!(!stage.notes().join(" ").contains("seven"), "{:?}", stage.notes());
}
