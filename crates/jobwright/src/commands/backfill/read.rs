//! From arguments to what is to be done.

use crate::arguments::{self, Compress, Names};
use crate::failure::{Failure, Kind};
use jobwright_jobs::backfill::{
    self, Auth, Backfill, BatchLimits, CheckpointPlace, Compression, Environment, Filters, KindName, Naming,
    ObjectPlaces, Once, Patience, Patterns, Place, Selection, Task, TlsPlaces,
};

/// What the arguments ask for.
pub(super) fn task(arguments: &arguments::Backfill) -> Result<Task, Failure> {
    let arguments::Way { page_size, concurrency, batch_bytes, batch_records, compress, retry_for, timeout: _ } =
        &arguments.way;
    let (what, start) = (&arguments.what, &arguments.start);
    let kinds = |names: &[String]| names.iter().map(|name| KindName::from(name.as_str())).collect();
    let size = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let backfill = Backfill {
        run: None,
        kinds: kinds(&what.kinds),
        exclude_kinds: kinds(&what.exclude_kinds),
        namespaces: what.namespaces.clone(),
        selection: Selection {
            labels: what.selector.clone(),
            fields: what.field_selector.clone(),
            metadata_only: what.metadata_only,
        },
        filters: Filters {
            names: backfill::Names { only: what.names.clone(), without: what.exclude_names.clone() },
            labels: Patterns { only: what.labels.clone(), without: what.exclude_labels.clone() },
            annotations: Patterns { only: what.annotations.clone(), without: what.exclude_annotations.clone() },
        },
        secret_values: match what.secret_values {
            arguments::SecretValues::Auto => backfill::SecretValues::Auto,
            arguments::SecretValues::Require => backfill::SecretValues::Require,
            arguments::SecretValues::Never => backfill::SecretValues::Never,
        },
        page_size: usize::from(*page_size),
        concurrency: usize::from(*concurrency),
        batches: BatchLimits { bytes: size(*batch_bytes), records: size(*batch_records) },
        patience: Patience { total: retry_for.duration(), ..Patience::default() },
        resume_within: start.resume_within.duration(),
        once: start.unless_complete.clone().map(|key| Once {
            key,
            holds: start.complete_for.map(jobwright_release::Period::duration),
            force: start.force,
            forced: None,
        }),
    };
    let arguments::Start { checkpoint, mark, if_forced, lock, lock_wait, wait_for, wait_timeout, .. } = start;
    if mark.is_some() && !matches!(checkpoint, Some(CheckpointPlace::ConfigMap(_))) {
        let problem = "`--mark` needs `--checkpoint configmap:NAME`, which remembers what was marked";
        return Err(Failure::new(Kind::Usage, problem));
    }
    Ok(Task {
        backfill,
        sink: arguments.sink.read()?,
        compression: compress.map(|compress| match compress {
            Compress::None => Compression::None,
            Compress::Zstd => Compression::Zstd,
            Compress::Gzip => Compression::Gzip,
        }),
        auth: auth(&arguments.delivery),
        tls: tls(&arguments.delivery),
        naming: Naming {
            prefix: arguments.delivery.metric_prefix.clone(),
            is_legal: arguments.delivery.metric_names == Names::Legal,
        },
        objects: ObjectPlaces {
            endpoint: arguments.delivery.s3_endpoint.clone(),
            region: arguments.delivery.s3_region.clone(),
            path_style: arguments.delivery.s3_path_style,
            environment: environment(),
        },
        checkpoint: checkpoint.clone(),
        mark: mark.clone(),
        only_if_forced: *if_forced,
        lock: lock.clone(),
        lock_wait: lock_wait.duration(),
        waits: wait_for.iter().map(arguments::Typed::read).collect::<Result<_, _>>()?,
        wait_timeout: wait_timeout.duration(),
    })
}

fn auth(delivery: &arguments::Delivery) -> Option<Auth> {
    let secret = match (&delivery.auth_file, &delivery.auth_secret) {
        (Some(file), _) => Place::File(file.clone()),
        (None, Some(name)) => {
            let (name, key) = name.split_once('/').unwrap_or((name, "token"));
            Place::Secret { name: name.to_owned(), key: key.to_owned() }
        }
        (None, None) => return None,
    };
    Some(Auth { header: delivery.auth_header.clone(), secret })
}

fn tls(delivery: &arguments::Delivery) -> TlsPlaces {
    let identity = delivery.client_cert.clone().zip(delivery.client_key.clone());
    TlsPlaces {
        authority: delivery.ca.clone().map(Place::File),
        identity: identity.map(|(certificate, key)| (Place::File(certificate), Place::File(key))),
    }
}

/// What the environment says of object storage.
pub(in crate::commands) fn environment() -> Environment {
    let is_about_it = |name: &str| ["AWS_", "AZURE_", "GOOGLE_"].iter().any(|prefix| name.starts_with(prefix));
    let texts =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Environment(texts.filter(|(name, _)| is_about_it(name)).collect())
}
