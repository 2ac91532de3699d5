//! A cluster in memory over HTTP, a directory with a plan, and the binary between them.

use jiff::SignedDuration;
use jobwright_drydock::{Builder, Clock, Drydock, Http, Serving};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
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
        Self::timed(builder, SignedDuration::ZERO, SPEED, plan)
    }

    /// A stage on a cluster whose clock is ahead of this machine's.
    pub(crate) fn shifted(builder: Builder, ahead: SignedDuration, plan: &str) -> Self {
        Self::timed(builder, ahead, SPEED, plan)
    }

    /// A stage on a cluster whose clock is this machine's.
    pub(crate) fn in_real_time(plan: &str) -> Self {
        Self::timed(Drydock::builder(), SignedDuration::ZERO, 1, plan)
    }

    fn timed(builder: Builder, ahead: SignedDuration, speed: u32, plan: &str) -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the binary looks at the clock on the wall too")]
        let now = jiff::Timestamp::now();
        let clock = Clock::starting_at(now.checked_add(ahead).unwrap()).times(speed);
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

    /// The same, with programs in `bin/` of the directory found first.
    pub(crate) fn jobwright_with_programs(&self, line: &str) -> Said {
        ended(self.command(line).env("PATH", self.programs()).stdin(Stdio::null()).output().unwrap())
    }

    /// Creates objects of the namespace of the plan, and the namespace.
    pub(crate) fn create(&self, objects: &[Value]) {
        use kube::api::{Api, DynamicObject, Patch, PatchParams};
        let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        let client = self.client();
        self.block_on(async {
            for object in std::iter::once(&namespace).chain(objects) {
                let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
                let types = object.types.clone().unwrap();
                let kind = kube::core::GroupVersionKind::try_from(&types).unwrap();
                let resource = kube::core::ApiResource::from_gvk(&kind);
                let api: Api<DynamicObject> = match types.kind.as_str() {
                    "Namespace" => Api::all_with(client.clone(), &resource),
                    _ => Api::namespaced_with(client.clone(), "shop", &resource),
                };
                let name = object.metadata.name.clone().unwrap();
                api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await.unwrap();
            }
        });
    }

    /// Deletes a Lease of the namespace of the plan.
    pub(crate) fn delete_lease(&self, name: &str) {
        use k8s_openapi::api::coordination::v1::Lease;
        let leases = kube::Api::<Lease>::namespaced(self.client(), "shop");
        self.block_on(leases.delete(name, &kube::api::DeleteParams::default())).unwrap();
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
        Running::new(child.unwrap())
    }

    /// The same, with programs in `bin/` of the directory found first.
    pub(crate) fn start_with_programs(&self, line: &str) -> Running {
        let mut command = self.command(line);
        command.env("PATH", self.programs()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::new(command.spawn().unwrap())
    }

    #[expect(clippy::disallowed_methods, reason = "programs are found where the tests find them")]
    fn programs(&self) -> String {
        format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap())
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

    /// The objects of the namespace of the plan that a deploy may create or change, with their versions.
    pub(crate) fn objects(&self) -> Vec<String> {
        use k8s_openapi::api::{
            batch::v1::Job, coordination::v1::Lease, core::v1::ConfigMap, core::v1::PersistentVolumeClaim,
        };
        use kube::api::{Api, ListParams, PartialObjectMeta};
        fn name<K>(object: &PartialObjectMeta<K>) -> String {
            let metadata = &object.metadata;
            format!("{:?} {:?}", metadata.name, metadata.resource_version)
        }
        let (client, all) = (self.client(), ListParams::default());
        self.block_on(async {
            let maps = Api::<ConfigMap>::namespaced(client.clone(), "shop").list_metadata(&all).await.unwrap();
            let jobs = Api::<Job>::namespaced(client.clone(), "shop").list_metadata(&all).await.unwrap();
            let leases = Api::<Lease>::namespaced(client.clone(), "shop").list_metadata(&all).await.unwrap();
            let claims = Api::<PersistentVolumeClaim>::namespaced(client, "shop").list_metadata(&all).await.unwrap();
            let lists = [
                maps.iter().map(name).collect::<Vec<_>>(),
                jobs.iter().map(name).collect(),
                leases.iter().map(name).collect(),
                claims.iter().map(name).collect(),
            ];
            lists.concat()
        })
    }

    /// Where the cluster listens.
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        self.serving.address()
    }

    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
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
pub(crate) struct Running {
    child: Child,
    out: Output,
    error: Output,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let (out, error) = (Output::of(child.stdout.take().unwrap()), Output::of(child.stderr.take().unwrap()));
        Self { child, out, error }
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Waits until its standard output contains this.
    pub(crate) fn wait_for_out(&self, text: &str) {
        self.out.wait_for(text);
    }

    /// Waits until its standard error contains this.
    pub(crate) fn wait_for_error(&self, text: &str) {
        self.error.wait_for(text);
    }

    /// Waits until it has ended, which it has to do soon. It is killed otherwise.
    pub(crate) fn wait_within_a_minute(mut self) -> Said {
        let has_ended = (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            self.child.try_wait().unwrap().is_some()
        });
        if !has_ended {
            self.child.kill().unwrap();
        }
        let said = self.wait();
        assert!(has_ended, "it does not end: {}\n{}", said.out, said.error);
        said
    }

    pub(crate) fn wait(mut self) -> Said {
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Said { code, out: self.out.end(), error: self.error.end() }
    }
}

/// What a command has written so far.
struct Output {
    text: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Output {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                written.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { text, reader }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, text: &str) {
        let has_come = (0..3000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            self.so_far().contains(text)
        });
        assert!(has_come, "`{text}` is not in: {}", self.so_far());
    }

    fn end(self) -> String {
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
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
