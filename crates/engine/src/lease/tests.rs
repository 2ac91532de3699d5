//! Two processes and one lease on drydock: hung calls, frozen processes, clocks that differ, Leases that are deleted.

use super::*;
use jobwright_drydock::{Drydock, Fault, Faults};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::DeleteParams;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

struct Lab {
    drydock: Drydock,
}

impl Lab {
    async fn new() -> Self {
        let lab = Self { drydock: Drydock::new() };
        let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        let namespaces = Api::<Namespace>::all(lab.client(&Faults::new(0)));
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        lab
    }

    fn client(&self, faults: &Faults) -> Client {
        Client::new(faults.around(self.drydock.clone()), "shop")
    }

    /// A clock that is wrong by this many seconds.
    fn clock(&self, skew: i64) -> Clock {
        let drydock = self.drydock.clone();
        Clock::new(move || drydock.now() + jiff::SignedDuration::from_secs(skew))
    }

    async fn take(&self, holder: &str, skew: i64, faults: &Faults) -> Result<Lease, Error> {
        self.take_heard(holder, skew, faults, &Events::nowhere()).await
    }

    async fn take_heard(&self, holder: &str, skew: i64, faults: &Faults, events: &Events) -> Result<Lease, Error> {
        let claim = Claim {
            namespace: "shop".to_owned(),
            name: "lock".to_owned(),
            holder: holder.to_owned(),
            labels: BTreeMap::new(),
            patience: Duration::from_mins(2),
        };
        Lease::take(&self.client(faults), claim, &self.clock(skew), events).await
    }

    fn leases(&self) -> Api<Object> {
        Api::namespaced(self.client(&Faults::new(0)), "shop")
    }
}

/// The second process gets the lease only when the first has stopped.
async fn assert_one_at_a_time(lab: &Lab, first: Lease, second_skew: i64) {
    let stopped = async {
        first.lost().await;
        assert!(!first.tenure().is_valid());
        Instant::now()
    };
    let nothing = Faults::new(0);
    let taken = async { (lab.take("second", second_skew, &nothing).await.unwrap(), Instant::now()) };
    let (stopped, (second, taken)) = tokio::join!(stopped, taken);
    assert!(taken - stopped >= Duration::from_secs(4), "{:?}", taken - stopped);
    assert_ne!(second.fence(), first.fence());
}

#[tokio::test(start_paused = true)]
async fn a_holder_whose_renewals_hang_stops_before_another_process_starts() {
    let lab = Lab::new().await;
    let faults = Faults::new(0);
    let first = lab.take("first", 0, &faults).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(first.tenure().is_valid());
    faults.on(|_| true).fail(Fault::Slow(Duration::from_hours(1)));
    assert_one_at_a_time(&lab, first, 0).await;
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_by_an_hour_give_no_lease_away() {
    for skew in [-3600, 3600] {
        let lab = Lab::new().await;
        let faults = Faults::new(0);
        let first = lab.take("first", 0, &faults).await.unwrap();
        let nothing = Faults::new(0);
        let second = lab.take("second", skew, &nothing);
        let held = tokio::time::timeout(Duration::from_mins(1), second).await;
        assert!(held.is_err() && first.tenure().is_valid(), "{skew}");
        faults.on(|_| true).fail(Fault::Internal);
        assert_one_at_a_time(&lab, first, skew).await;
    }
}

#[tokio::test(start_paused = true)]
async fn two_processes_with_the_same_name_are_two() {
    let lab = Lab::new().await;
    let first = lab.take("same", 0, &Faults::new(0)).await.unwrap();
    let nothing = Faults::new(0);
    let second = lab.take("same", 0, &nothing);
    assert!(tokio::time::timeout(Duration::from_mins(1), second).await.is_err());
    assert!(first.tenure().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_free_at_once_and_a_deleted_one_is_lost() {
    let lab = Lab::new().await;
    let first = lab.take("first", 0, &Faults::new(0)).await.unwrap();
    assert!(first.is_new());
    let fence = first.fence().clone();
    first.release().await;
    let begun = Instant::now();
    let second = lab.take("second", 0, &Faults::new(0)).await.unwrap();
    assert_eq!((begun.elapsed(), second.is_new()), (Duration::ZERO, false));
    assert_eq!((second.fence().lease.as_str(), second.fence().epoch), (fence.lease.as_str(), fence.epoch + 1));
    lab.leases().delete("lock", &DeleteParams::default()).await.unwrap();
    tokio::time::timeout(RENEWAL * 2, second.lost()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_that_waits_for_a_lease_which_is_deleted_starts_after_its_holder_has_stopped() {
    let lab = Lab::new().await;
    let faults = Faults::new(0);
    let first = lab.take("first", 0, &faults).await.unwrap();
    // The holder does not notice it: its calls hang.
    let deletion = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        faults.on(|_| true).fail(Fault::Slow(Duration::from_hours(1)));
        lab.leases().delete("lock", &DeleteParams::default()).await.unwrap();
    };
    tokio::join!(deletion, assert_one_at_a_time(&lab, first, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_loses_no_lease() {
    let lab = Lab::new().await;
    let faults = Faults::new(0);
    let first = lab.take("first", 0, &faults).await.unwrap();
    faults.on(|call| call.verb == "update").times(1).fail(Fault::Disconnect(jobwright_drydock::When::After));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(first.tenure().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_broken_lease_stops_its_holder_before_the_next_process_starts() {
    let lab = Lab::new().await;
    let first = lab.take("first", 0, &Faults::new(0)).await.unwrap();
    let retry = Retry::new(lab.clock(0), CancellationToken::new(), Events::nowhere());
    let client = lab.client(&Faults::new(0));
    let broken = break_lease(&client, "shop", "lock", "alice", &retry).await.unwrap();
    assert_eq!(broken.unwrap().name, "first");
    let shown = read_holder(&client, "shop", "lock", &retry).await.unwrap();
    assert_eq!(shown.unwrap().name, "none (broken by alice)");
    assert_one_at_a_time(&lab, first, 0).await;
}

#[tokio::test(start_paused = true)]
async fn writes_that_conflict_for_ever_end_at_the_retry_limit_and_are_reported() {
    for is_new in [true, false] {
        let lab = Lab::new().await;
        if !is_new {
            lab.take("first", 0, &Faults::new(0)).await.unwrap().release().await;
        }
        let faults = Faults::new(0);
        faults.on(jobwright_drydock::Call::writes).fail(Fault::Conflict);
        let (events, mut heard) = Events::channel();
        let begun = Instant::now();
        let taking = lab.take_heard("second", 0, &faults, &events);
        let taken = tokio::time::timeout(crate::RETRY_LIMIT * 2, taking).await.expect("it never ends");
        let message = taken.err().unwrap().whole_message();
        assert!(message.starts_with("cannot take the lease `lock`, retried for 5m: "), "{message}");
        assert_eq!(begun.elapsed().as_secs(), crate::RETRY_LIMIT.as_secs());
        let reported = heard.try_recv().expect("nothing is reported");
        assert!(matches!(reported, Event::Retrying { doing, .. } if doing == "take the lease `lock`"));
    }
}

/// Reads objects through a client that is bound to a lease, and says which calls reached the server.
struct Bound {
    client: Client,
    faults: Faults,
}

impl Bound {
    fn to(lab: &Lab, lease: &Lease) -> Self {
        let faults = Faults::new(0);
        Self { client: crate::call::guarded(&lab.client(&faults), lease.tenure()), faults }
    }

    async fn read(&self) -> kube::Result<()> {
        Api::<Namespace>::all(self.client.clone()).get("shop").await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_wakes_up_after_its_tenure_sends_nothing() {
    let lab = Lab::new().await;
    let slept = Arc::new(AtomicI64::new(0));
    let (drydock, ahead) = (lab.drydock.clone(), Arc::clone(&slept));
    let clock = Clock::new(move || drydock.now() + jiff::SignedDuration::from_secs(ahead.load(Ordering::Relaxed)));
    let claim = Claim {
        namespace: "shop".to_owned(),
        name: "lock".to_owned(),
        holder: "first".to_owned(),
        labels: BTreeMap::new(),
        patience: Duration::from_mins(2),
    };
    let lease = Lease::take(&lab.client(&Faults::new(0)), claim, &clock, &Events::nowhere()).await.unwrap();
    let bound = Bound::to(&lab, &lease);
    bound.read().await.unwrap();
    // The machine slept: its monotonic clock stood still, and the task that renews the lease has not run yet.
    slept.store(11, Ordering::Relaxed);
    let refused = bound.read().await.unwrap_err();
    assert_eq!(classify(&refused), Answer::LostLease, "{refused}");
    assert_eq!(bound.faults.calls().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_ends_with_the_tenure_even_if_nothing_renews_the_lease() {
    let lab = Lab::new().await;
    let clock = lab.clock(0);
    let (tenure, term) = Tenure::begin("lock", &clock, Instant::now(), clock.now());
    let faults = Faults::new(0);
    faults.on(|_| true).fail(Fault::Slow(Duration::from_secs(20)));
    let client = crate::call::guarded(&lab.client(&faults), &tenure);
    let begun = Instant::now();
    let lost = Api::<Namespace>::all(client).get("shop").await.unwrap_err();
    assert_eq!(classify(&lost), Answer::LostLease, "{lost}");
    assert_eq!(begun.elapsed(), VALIDITY);
    drop(term);
}
