//! drydock over HTTP beside a real API server with its etcd, in the same run.

use super::real::{Server, Tools};
use super::{Bench, ratio, units, whole};
use anyhow::{Context as _, Result};
use std::time::{Duration, Instant};

/// How many objects are created, listed and watched.
const COUNT: usize = 10_000;
/// How often they are listed and watched, because once is over too soon to be timed.
const TIMES: usize = 10;

/// What a server took: seconds, and bytes.
struct Taken {
    start: f64,
    create: Phase,
    list: Phase,
    watch: Phase,
    /// By how much it grew for each object while they were created.
    grown: f64,
    /// The most it has had.
    peak: f64,
}

/// What a client waited for.
struct Phase {
    /// By the clock on the wall, in seconds.
    waited: f64,
    /// What the server worked meanwhile, in seconds on processors.
    worked: f64,
}

pub(super) fn section(bench: &Bench) -> Result<String> {
    let count = bench.size(COUNT);
    let intro = format!(
        "One `kube::Client` over TLS, on `jobwright drydock` with everything that lives in it and on a real kube-apiserver with\n\
         etcd and no controllers (etcd does not wait for the disk): {} ConfigMaps of half a kilobyte are created one after the\n\
         other, listed {TIMES} times, and watched from the beginning {TIMES} times. A start ends with the answer to `/version`.\n\n",
        whole(units(count))
    );
    let drydock = play(bench, Server::drydock(&bench.root)?, count)?;
    let Some(tools) = Tools::find()? else {
        let how = "cargo run -p jobwright-e2e --bin cluster -- up --tier light";
        return Ok(format!("{intro}The real server was not measured: it is not installed (`{how}` builds it).\n"));
    };
    let real = play(bench, tools.start()?, count)?;
    let mut page = format!(
        "{intro}| | drydock | kube-apiserver {} and etcd {} | ratio |\n|---|---:|---:|---:|\n",
        tools.kubernetes, tools.etcd
    );
    let mut row = |name: &str, one: f64, other: f64, show: fn(f64) -> String| {
        page.push_str(&format!("| {name} | {} | {} | {} |\n", show(one), show(other), ratio(one, other)));
    };
    row("from its start to the first answer", drydock.start, real.start, seconds);
    for (name, one, other) in [
        ("created", &drydock.create, &real.create),
        ("listed", &drydock.list, &real.list),
        ("watched", &drydock.watch, &real.watch),
    ] {
        row(&format!("{name}: until the client is done"), one.waited, other.waited, seconds);
        row(&format!("{name}: the server's time on processors"), one.worked, other.worked, seconds);
    }
    row("memory for each object, while they are created", drydock.grown, real.grown, kilobytes);
    row("memory at most", drydock.peak, real.peak, megabytes);
    Ok(page)
}

/// Lets a client do its work on a server.
fn play(bench: &Bench, mut server: Server, count: usize) -> Result<Taken> {
    wait_for(bench, &mut server, "/version")?;
    let start = server.age().as_secs_f64();
    wait_for(bench, &mut server, "/api/v1/namespaces/default")?;
    let before = server.memory();
    let [count_text, times_text] = [count, TIMES].map(|number| number.to_string());
    let create = phase(bench, &server, &["create", &count_text], 1)?;
    let grown = (server.memory() - before) / units(count);
    let list = phase(bench, &server, &["list", &count_text, &times_text], 1)?;
    let watch = phase(bench, &server, &["watch", &count_text], TIMES)?;
    Ok(Taken { start, create, list, watch, grown, peak: server.peak() })
}

/// Asks for a page until it is given.
#[expect(clippy::disallowed_methods, reason = "this is where times are taken")]
pub(super) fn wait_for(bench: &Bench, server: &mut Server, path: &str) -> Result<()> {
    let kubeconfig = kubeconfig(server)?;
    let waiting = Instant::now();
    while bench.drydock.run_quietly(&["on", &kubeconfig, "ask", path]).is_err() {
        server.check()?;
        anyhow::ensure!(waiting.elapsed() < Duration::from_mins(2), "the server does not answer");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Lets a client do something, some times, and takes the times.
#[expect(clippy::disallowed_methods, reason = "this is where times are taken")]
fn phase(bench: &Bench, server: &Server, what: &[&str], times: usize) -> Result<Phase> {
    let kubeconfig = kubeconfig(server)?;
    let arguments = [&["on", &kubeconfig], what].concat();
    let (begun, before) = (Instant::now(), server.work());
    for _ in 0..times {
        bench.drydock.run(&arguments)?;
    }
    Ok(Phase { waited: begun.elapsed().as_secs_f64(), worked: server.work() - before })
}

fn kubeconfig(server: &Server) -> Result<String> {
    Ok(server.kubeconfig().to_str().context("a path that is not text")?.to_owned())
}

fn seconds(number: f64) -> String {
    format!("{number:.2} s")
}

fn kilobytes(number: f64) -> String {
    format!("{:.1} kB", number / 1e3)
}

fn megabytes(number: f64) -> String {
    format!("{:.0} MB", number / 1e6)
}
