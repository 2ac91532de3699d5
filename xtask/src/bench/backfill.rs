//! `jobwright backfill` of a real API server, beside curl that pages the same lists and beside kubectl.

use super::real::{Server, Tools};
use super::{Bench, ratio, units, whole};
use anyhow::{Context as _, Result, ensure};
use jobwright_e2e::tools::Tools as Directory;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How many objects there are, first and then.
const FEW: usize = 10_000;
const MANY: usize = 100_000;
/// How many objects a page has.
const PAGE: usize = 500;
/// Where the objects are listed, and what they are called on a command line.
const LISTS: [&str; 3] = ["/api/v1/configmaps", "/api/v1/pods", "/apis/bench.example/v1/widgets"];
const KINDS: &str = "configmaps,pods,widgets.bench.example";
/// How often a time is taken; the shortest counts.
const TIMES: usize = 3;

/// What something took.
#[derive(Clone, Copy, Debug)]
struct Taken {
    seconds: f64,
    /// At most, in bytes.
    peak: f64,
    /// On processors, in seconds.
    worked: f64,
    pages: usize,
    bytes: f64,
}

pub(super) fn section(bench: &Bench) -> Result<String> {
    let (few, many) = (bench.size(FEW), bench.size(MANY));
    let intro = format!(
        "Everything of three kinds (two ConfigMaps and two pods to one custom resource) of a real kube-apiserver with etcd, in pages\n\
         of {PAGE}, one connection a kind, three kinds at once, to `/dev/null`. curl has been told beforehand which pages there are and\n\
         asks for them on one connection a kind: it neither reads a page to find the next one nor takes anything out. kubectl is\n\
         `get -A -o json` of the same kinds. Times are the shortest of {TIMES}; processors are those of the client alone.\n\n"
    );
    let Some(tools) = Tools::find()? else {
        let how = "cargo run -p jobwright-e2e --bin cluster -- up --tier light";
        return Ok(format!("{intro}Nothing was measured: the real server is not installed (`{how}` builds it).\n"));
    };
    let mut server = tools.start()?;
    super::http::wait_for(bench, &mut server, "/api/v1/namespaces/default")?;
    fill(bench, &server, 0, few)?;
    let small = shortest(|| backfill(bench, &server))?;
    fill(bench, &server, few, many)?;
    let large = shortest(|| backfill(bench, &server))?;
    let curl = Curl::prepare(&server)?;
    let paged = shortest(|| curl.run())?;
    let kubectl = shortest(|| kubectl(&server))?;
    let mut page = format!(
        "{intro}| {} objects | seconds | on processors | pages | read | memory at most |\n|---|---:|---:|---:|---:|---:|\n",
        whole(units(many))
    );
    for (name, taken) in [("jobwright backfill", large), ("curl", paged), ("kubectl get -A -o json", kubectl)] {
        let pages = if taken.pages == 0 { "–".to_owned() } else { taken.pages.to_string() };
        let read = if taken.bytes == 0.0 { "–".to_owned() } else { megabytes(taken.bytes) };
        page.push_str(&format!(
            "| {name} | {:.2} | {:.2} | {pages} | {read} | {} |\n",
            taken.seconds,
            taken.worked,
            megabytes(taken.peak)
        ));
    }
    page.push_str(&format!(
        "\n- {} times what curl takes (at most 1.3 is wanted), with {} pages to curl's {}.\n\
         - {} times as fast as kubectl (at least 3 is wanted).\n\
         - Memory at most: {} with {} objects, {} with {}: {} times as much (at most 64 MiB and 1.1 times are wanted).\n",
        ratio(large.seconds, paged.seconds),
        large.pages,
        paged.pages,
        ratio(kubectl.seconds, large.seconds),
        megabytes(small.peak),
        whole(units(few)),
        megabytes(large.peak),
        whole(units(many)),
        ratio(large.peak, small.peak),
    ));
    Ok(page)
}

fn fill(bench: &Bench, server: &Server, from: usize, to: usize) -> Result<()> {
    println!("  filling the cluster up to {to} objects");
    let [from, to] = [from, to].map(|number| number.to_string());
    bench.drydock.run(&["on", &text(server.kubeconfig())?, "fill", &from, &to])?;
    Ok(())
}

fn shortest(mut measure: impl FnMut() -> Result<Taken>) -> Result<Taken> {
    let runs = (0..TIMES).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    let peak = runs.iter().map(|taken| taken.peak).fold(0.0, f64::max);
    let best =
        runs.into_iter().min_by(|one, other| one.seconds.total_cmp(&other.seconds)).context("nothing was run")?;
    Ok(Taken { peak, ..best })
}

fn backfill(bench: &Bench, server: &Server) -> Result<Taken> {
    let mut command = Command::new(bench.root.join("target/release/jobwright"));
    command.args(["backfill", "--sink", "stdout", "-q", "-o", "json", "--concurrency", "3"]);
    command.args(["--kinds", KINDS, "--page-size", &PAGE.to_string()]).arg("--kubeconfig").arg(server.kubeconfig());
    // With lines on its output, what became of it is told beside them.
    let (taken, told) = follow(vec![command.stderr(Stdio::piped()).spawn_silently()?])?;
    let summary: Value = serde_json::from_str(told.trim()).with_context(|| format!("no summary: {told}"))?;
    ensure!(summary["complete"] == true, "the backfill is not complete: {summary}");
    let kinds = summary["kinds"].as_array().into_iter().flatten();
    let pages = kinds.filter_map(|kind| kind["pages"].as_u64()).sum::<u64>();
    Ok(Taken { pages: usize::try_from(pages)?, bytes: 0.0, ..taken })
}

fn kubectl(server: &Server) -> Result<Taken> {
    let directory = Directory::directory(None)?;
    let mut command = Command::new(directory.join("kubernetes-1.34.10/kubectl"));
    command.arg("--kubeconfig").arg(server.kubeconfig()).args(["get", KINDS, "-A", "-o", "json"]);
    Ok(follow(vec![command.stderr(Stdio::null()).spawn_silently()?])?.0)
}

/// curl, and the pages that it is told.
struct Curl {
    directory: tempfile::TempDir,
    pages: usize,
    bytes: f64,
}

impl Curl {
    /// Finds out which pages there are, a file of them for each list.
    fn prepare(server: &Server) -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        let (mut pages, mut bytes) = (0, 0.0);
        for (number, list) in LISTS.iter().enumerate() {
            let mut file = String::new();
            let mut next = format!("{}{list}?limit={PAGE}", server.address());
            loop {
                let output = Command::new("curl").args(Self::usual()).arg(&next).output().context("cannot run curl")?;
                ensure!(output.status.success(), "curl failed on {next}");
                let page: Value = serde_json::from_slice(&output.stdout).context("a page is no JSON")?;
                file.push_str(&format!("url = \"{next}\"\noutput = \"/dev/null\"\n"));
                pages += 1;
                bytes += units(output.stdout.len());
                match page["metadata"]["continue"].as_str() {
                    Some(token) if !token.is_empty() => {
                        next = format!("{}{list}?limit={PAGE}&continue={token}", server.address());
                    }
                    _ => break,
                }
            }
            std::fs::write(directory.path().join(number.to_string()), file)?;
        }
        std::fs::write(directory.path().join("usual"), Self::usual().join("\n"))?;
        Ok(Self { directory, pages, bytes })
    }

    fn usual() -> [String; 4] {
        let header = format!("Authorization: Bearer {}", Server::token());
        ["--silent".to_owned(), "--insecure".to_owned(), "--header".to_owned(), header]
    }

    fn run(&self) -> Result<Taken> {
        let usual = std::fs::read_to_string(self.directory.path().join("usual"))?;
        let start = |number: usize| {
            let mut command = Command::new("curl");
            command
                .args(usual.lines())
                .arg("--fail")
                .arg("--config")
                .arg(self.directory.path().join(number.to_string()));
            command.stderr(Stdio::null()).spawn_silently()
        };
        let processes = (0..LISTS.len()).map(start).collect::<Result<Vec<_>>>()?;
        let (taken, _) = follow(processes)?;
        Ok(Taken { pages: self.pages, bytes: self.bytes, ..taken })
    }
}

/// Starts a process whose output nobody reads.
trait SpawnSilently {
    fn spawn_silently(&mut self) -> Result<(Child, Instant)>;
}

impl SpawnSilently for Command {
    #[expect(clippy::disallowed_methods, reason = "this is where times are taken")]
    fn spawn_silently(&mut self) -> Result<(Child, Instant)> {
        let name = self.get_program().to_owned();
        let process = self.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok((process.with_context(|| format!("cannot start {}", name.display()))?, Instant::now()))
    }
}

/// Waits for processes, and looks how much they take meanwhile. Gives what they told, too.
fn follow(mut processes: Vec<(Child, Instant)>) -> Result<(Taken, String)> {
    let begun = processes.iter().map(|(_, begun)| *begun).min().context("nothing was started")?;
    let mut usage = vec![(0.0, 0.0); processes.len()];
    let mut told = String::new();
    let mut running = processes.len();
    let mut done = vec![false; processes.len()];
    while running > 0 {
        for (index, (process, _)) in processes.iter_mut().enumerate() {
            if done[index] {
                continue;
            }
            let now = look(process.id());
            usage[index] = (f64::max(usage[index].0, now.0), f64::max(usage[index].1, now.1));
            if let Some(status) = process.try_wait()? {
                ensure!(status.success(), "a process ended with {status}");
                done[index] = true;
                running -= 1;
            }
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let seconds = begun.elapsed().as_secs_f64();
    for (process, _) in &mut processes {
        if let Some(stderr) = &mut process.stderr {
            std::io::Read::read_to_string(stderr, &mut told)?;
        }
    }
    let (peak, worked) = usage.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Ok((Taken { seconds, peak, worked, pages: 0, bytes: 0.0 }, told))
}

/// The most memory that a process has had, in bytes, and its time on processors, in seconds.
fn look(process: u32) -> (f64, f64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let status = read("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let peak = peak.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() * 1024.0;
    let stat = read("stat");
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    (peak, fields.filter_map(|number| number.parse::<f64>().ok()).sum::<f64>() / 100.0)
}

fn text(path: PathBuf) -> Result<String> {
    path.into_os_string().into_string().ok().context("a path that is not text")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / 1024.0 / 1024.0)
}
