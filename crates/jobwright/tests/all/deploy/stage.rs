//! A cluster in memory over HTTP, a directory with a plan, and the binary between them.

use jobwright_drydock::{Builder, Clock, Drydock, Http, Serving};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How many times faster than the clock on the wall its time goes.
const SPEED: u32 = 10;

pub(crate) struct Stage {
    runtime: tokio::runtime::Runtime,
    serving: Serving,
    directory: tempfile::TempDir,
}

/// What a command said, and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) error: String,
}

impl Said {
    /// The one document of `-o json`.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.error))
    }

    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.error);
        self
    }
}

impl Stage {
    /// A stage whose plan has these lines below its release.
    pub(crate) fn new(plan: &str) -> Self {
        Self::on(Drydock::builder(), plan)
    }

    /// A stage on a certain cluster.
    pub(crate) fn on(builder: Builder, plan: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the binary looks at the clock on the wall too")]
        let clock = Clock::starting_at(jiff::Timestamp::now()).times(SPEED);
        let http = Http { listen: "127.0.0.1:0".parse().unwrap(), tls: true };
        let serving = runtime.block_on(builder.clock(clock).serve(http)).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("kubeconfig"), serving.kubeconfig()).unwrap();
        let stage = Self { runtime, serving, directory };
        stage.plan("1.4.0", plan);
        stage
    }

    /// Writes the plan of a version.
    pub(crate) fn plan(&self, version: &str, rest: &str) {
        let head = format!(
            "apiVersion: jobwright.io/v1alpha1\nkind: Plan\nrelease: {{name: shop, namespace: shop, version: {version}}}\n"
        );
        self.file("jobwright.yaml", &(head + rest));
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jobwright"));
        command.args(line.split_whitespace()).current_dir(self.directory.path());
        command.env("KUBECONFIG", self.path("kubeconfig")).env_remove("RUST_LOG");
        command
    }

    /// Runs a command to its end, as it is typed in the directory of the plan.
    pub(crate) fn jobwright(&self, line: &str) -> Said {
        ended(self.command(line).stdin(Stdio::null()).output().unwrap())
    }

    /// The same with no cluster but the one that it makes up.
    pub(crate) fn jobwright_alone(&self, line: &str) -> Said {
        ended(self.command(line).env_remove("KUBECONFIG").stdin(Stdio::null()).output().unwrap())
    }

    /// Lets a user do what roles allow, everywhere.
    pub(crate) fn allow(&self, user: &str, roles: &str) {
        use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
        let role: ClusterRole =
            serde_json::from_value(jobwright_yaml::parse(roles).unwrap()[0].root.to_json()).unwrap();
        let group = "rbac.authorization.k8s.io";
        let binding: ClusterRoleBinding = serde_json::from_value(serde_json::json!({
            "metadata": {"name": user},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role.metadata.name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }))
        .unwrap();
        let client = self.client();
        self.block_on(async {
            let parameters = kube::api::PostParams::default();
            kube::Api::all(client.clone()).create(&parameters, &role).await.unwrap();
            kube::Api::all(client).create(&parameters, &binding).await.unwrap();
        });
    }

    /// Starts a command.
    pub(crate) fn start(&self, line: &str) -> Running {
        let child = self.command(line).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Running(child.unwrap())
    }

    pub(crate) fn drydock(&self) -> &Drydock {
        self.serving.drydock()
    }

    /// A client of an administrator.
    pub(crate) fn client(&self) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(self.serving.kubeconfig()).unwrap();
        self.runtime.block_on(async {
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
            kube::Client::try_from(config).unwrap()
        })
    }

    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// How often containers with this line have started, by the witness.
    pub(crate) fn starts(&self, line: &str) -> usize {
        self.drydock()
            .witness()
            .iter()
            .filter(|started| started.command.last().is_some_and(|last| last == line))
            .count()
    }

    /// Waits until a container with this line has started this often.
    pub(crate) fn wait_for_starts(&self, line: &str, times: usize) {
        let has_started = (0..5000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            self.starts(line) >= times
        });
        assert!(has_started, "`{line}` has started {} times", self.starts(line));
    }
}

/// A command that has not ended.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.0)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    pub(crate) fn wait(self) -> Said {
        ended(self.0.wait_with_output().unwrap())
    }
}

fn ended(output: std::process::Output) -> Said {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), error: text(&output.stderr) }
}

/// A job of a plan that is a pod with a shell line; `more` are fields of it.
pub(crate) fn job(id: &str, line: &str, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { ", " };
    format!(
        "- {{id: {id}, retires: {{never: test}}{comma}{more}, pod: {{template: {{spec: {{containers: \
         [{{name: m, image: 'busybox:1', command: [sh, -c, '{line}']}}]}}}}}}}}\n"
    )
}

/// A component that is one ConfigMap, and the file of it.
pub(crate) fn component(stage: &Stage, name: &str, value: &str) {
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{value: '{value}'}}\n");
    stage.file(&format!("{name}/map.yaml"), &text);
}
