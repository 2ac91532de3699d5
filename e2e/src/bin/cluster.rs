//! `cluster`: a real Kubernetes with real deployers on this machine, started and ended by one command.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is where the command prints")]

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use jobwright_e2e::cluster::{self, Deployer, Name, Place, Skipped, Tier, Wanted};
use jobwright_e2e::image::build::{AGENT, JOBWRIGHT, Own, Quality};
use jobwright_e2e::image::{Image, Packing};
use jobwright_e2e::install::{Effort, PATIENCE, catalogue};
use jobwright_e2e::tools::Tools;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Start and end a real Kubernetes on this machine
#[derive(Debug, Parser)]
struct Arguments {
    /// The directory of the tools
    #[arg(long, value_name = "DIRECTORY", env = "JOBWRIGHT_TOOLS", global = true)]
    tools: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing and start a cluster, or what is missing of it
    Up {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        kind: Kind,
    },
    /// Install what a cluster would need, and start none
    Tools {
        #[command(flatten)]
        kind: Kind,
    },
    /// End a cluster and leave nothing of it
    Down {
        #[command(flatten)]
        named: Named,
    },
    /// Say what runs, and how long it took to start
    Status {
        /// Only this cluster
        #[arg(long, value_name = "NAME")]
        name: Option<Name>,
    },
    /// Run a command inside a cluster, with its kubeconfig and its tools
    Exec {
        #[command(flatten)]
        named: Named,
        /// The command
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Give images to the node: archives, or programs of this workspace
    Load {
        #[command(flatten)]
        named: Named,
        /// Archives (OCI or Docker); `jobwright` and `agent` are built from this workspace
        #[arg(required = true)]
        images: Vec<PathBuf>,
    },
    /// Build the image that is released, as an OCI layout
    Image {
        /// The directory to make it in
        #[arg(long, value_name = "DIRECTORY")]
        output: PathBuf,
        /// What the image is called
        #[arg(long, value_name = "NAME", default_value = concat!("jobwright:", env!("CARGO_PKG_VERSION")))]
        image: String,
    },
    /// Hand connections from the host on into a cluster
    #[command(hide = true)]
    Forward { to: String },
    /// Serve git repositories and files
    #[command(hide = true)]
    Serve { address: String, git: PathBuf, files: PathBuf },
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The name of the cluster
    #[arg(long, value_name = "NAME", default_value = "e2e")]
    name: Name,
}

#[derive(Debug, clap::Args)]
struct Kind {
    /// How much of a node it has
    #[arg(long, value_enum, default_value = "full")]
    tier: Tier,
    /// The version of Kubernetes
    #[arg(long, value_name = "VERSION", default_value = catalogue::KUBERNETES)]
    kubernetes: String,
    /// Deployers that it has, with commas between
    #[arg(long, value_name = "DEPLOYERS", value_enum, value_delimiter = ',')]
    with: Vec<Deployer>,
    /// How many minutes making one tool may take
    #[arg(long, value_name = "MINUTES", default_value_t = PATIENCE.as_secs() / 60)]
    patience: u64,
    /// How many minutes making all tools may take
    #[arg(long, value_name = "MINUTES", default_value_t = 8 * PATIENCE.as_secs() / 60)]
    within: u64,
}

impl Kind {
    fn wanted(self, tools: PathBuf) -> Wanted {
        Wanted {
            tier: self.tier,
            kubernetes: self.kubernetes.trim_start_matches('v').to_owned(),
            deployers: self.with,
            tools,
            patience: Duration::from_mins(self.patience),
            within: Duration::from_mins(self.within),
        }
    }
}

impl Named {
    fn place(&self) -> Place {
        Place::of(&self.name)
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    let tools = || Tools::directory(arguments.tools.clone());
    match arguments.command {
        Command::Up { named, kind } => {
            let place = named.place();
            let record = cluster::up(&place, &kind.wanted(tools()?), &tell)?;
            tell_skipped(&record.skipped);
            println!("cluster {} is up; from here: KUBECONFIG={}", named.name, place.kubeconfig().display());
        }
        Command::Tools { kind } => {
            let wanted = kind.wanted(tools()?);
            tell_skipped(&cluster::install(&wanted, &tell)?);
            println!("a cluster can be started with what is in `{}`", wanted.tools.display());
        }
        Command::Down { named } => {
            let was_there = cluster::down(&named.place(), &tell)?;
            println!("cluster {} {}", named.name, if was_there { "is down" } else { "was not there" });
        }
        Command::Status { name } => {
            let places = name.map_or_else(Place::all, |name| vec![Place::of(&name)]);
            if places.is_empty() {
                println!("no clusters");
            }
            for place in places {
                print!("{}", cluster::status(&place)?);
            }
        }
        Command::Exec { named, words } => cluster::exec(&named.place(), &tools()?, &words)?,
        Command::Load { named, images } => {
            for image in images {
                load(&named.place(), &tools()?, &image)
                    .with_context(|| format!("cannot load `{}`", image.display()))?;
            }
        }
        Command::Image { output, image } => {
            if output.join("oci-layout").exists() {
                bail!("`{}` holds an image already: remove it, or choose another directory", output.display());
            }
            let program = JOBWRIGHT.build(&tools()?, Quality::Released, EFFORT)?;
            let layout = Image::of_program(&image, JOBWRIGHT.program, &program)?.layout(Packing::Compressed)?;
            layout.write(&output)?;
            println!("{image} {} ({} bytes) in `{}`", layout.digest(), layout.size(), output.display());
        }
        Command::Forward { to } => cluster::forward::forward(std::io::stdin().as_fd(), &to)?,
        Command::Serve { address, git, files } => cluster::serve::serve(&address, &git, &files)?,
    }
    Ok(())
}

fn tell(line: &str) {
    println!("{line}");
}

fn tell_skipped(skipped: &[Skipped]) {
    for skipped in skipped {
        println!("skipped: {}: {}", skipped.deployer, skipped.reason);
    }
}

/// Programs of ours take as long as they take.
const EFFORT: Effort<'static> = Effort { tell: &tell, patience: PATIENCE };

fn load(place: &Place, tools: &Path, image: &Path) -> anyhow::Result<()> {
    let own: Option<Own> = [JOBWRIGHT, AGENT].into_iter().find(|own| Path::new(own.name) == image);
    if let Some(own) = own {
        let program = own.build(tools, Quality::Tested, EFFORT)?;
        for name in [own.image.to_owned(), own.next()] {
            cluster::load_image(place, &Image::of_program(&name, own.program, &program)?)?;
            println!("loaded {name}");
        }
    } else {
        cluster::load_archive(place, image)?;
        println!("loaded `{}`", image.display());
    }
    Ok(())
}
