//! Faults on demand: a layer around a drydock, or around any other Kubernetes API.
//!
//! A [`Faults`] holds rules; [`Faults::around`] puts them between a client and a service. Each call is counted
//! and noted, so that a test can first see which calls a program makes, and then stop it at every one of them:
//!
//! ```
//! use jobwright_drydock::{Drydock, Fault, Faults, When};
//!
//! let faults = Faults::new(0);
//! faults.on(|call| call.resource == "jobs" && call.verb == "create").times(1).fail(Fault::Conflict);
//! faults.stop_at(3, When::After);
//! let service = faults.around(Drydock::new()); // for `kube::Client::new(service, "default")`
//! # drop(service);
//! ```

mod call;
mod layer;

pub use call::Call;
pub use layer::{Faulty, FaultyBody};

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// 409: somebody else wrote in between.
    Conflict,
    /// 429, to be tried again after these seconds.
    TooManyRequests {
        /// The `Retry-After` header.
        retry_after: u32,
    },
    /// 500.
    Internal,
    /// 503.
    Unavailable,
    /// 504: the client is told that it took too long; whether the call took effect is another matter.
    TimeOut(When),
    /// The connection breaks: the client gets no answer at all.
    Disconnect(When),
    /// The answer comes late. If the caller gives up before that, the call has no effect.
    Slow(Duration),
    /// The answer comes late: the call is delayed before its effect, or its answer after it. The call takes effect even
    /// if the caller gives up before that.
    Late(When, Duration),
    /// The call is never answered.
    Hang(When),
    /// The headers of the answer arrive and nothing of its body: a watch that opens and stays silent.
    Silence,
    /// A watch starts and breaks off after this many bytes' worth of events: after the first that it tells.
    DropWatch,
}

/// On which side of its effect a call goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Nothing has happened yet.
    Before,
    /// It has happened, but the caller does not get to know.
    After,
}

/// Rules for what goes wrong when. Clones share them.
#[derive(Clone, Debug)]
pub struct Faults {
    state: Arc<Mutex<State>>,
    stopped: watch::Sender<bool>,
    pause: watch::Sender<Pause>,
}

/// Whether a caller is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    NotYet,
    Paused,
    Woken,
}

#[derive(Debug)]
struct State {
    rules: Vec<RuleState>,
    calls: Vec<Call>,
    hits: usize,
    stop_at: Option<(usize, When)>,
    pause_at: Option<usize>,
    random: fastrand::Rng,
}

/// Which calls a rule is about.
type Matcher = Arc<dyn Fn(&Call) -> bool + Send + Sync>;

#[derive(Clone)]
struct RuleState {
    matches: Matcher,
    skip: usize,
    left: Option<usize>,
    probability: f64,
    lasting: Option<Duration>,
    first_hit: Option<Instant>,
    fault: Fault,
}

impl std::fmt::Debug for RuleState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rule").field("fault", &self.fault).field("left", &self.left).finish_non_exhaustive()
    }
}

/// A rule in the making.
#[must_use]
pub struct Rule {
    faults: Faults,
    matches: Matcher,
    skip: usize,
    left: Option<usize>,
    probability: f64,
    lasting: Option<Duration>,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Rule").field("skip", &self.skip).field("left", &self.left).finish_non_exhaustive()
    }
}

/// What the layer does with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail(Fault),
    Stop(When),
    Hold,
}

impl Faults {
    /// No faults yet. The seed decides what rules with a probability hit.
    pub fn new(seed: u64) -> Self {
        let state = State {
            rules: Vec::new(),
            calls: Vec::new(),
            hits: 0,
            stop_at: None,
            pause_at: None,
            random: fastrand::Rng::with_seed(seed),
        };
        let (stopped, pause) = (watch::Sender::new(false), watch::Sender::new(Pause::NotYet));
        Self { state: Arc::new(Mutex::new(state)), stopped, pause }
    }

    /// Puts the faults between a client and a service.
    pub fn around<S>(&self, service: S) -> Faulty<S> {
        Faulty::new(self.clone(), service)
    }

    /// Starts a rule about the calls that `matches` says yes to.
    pub fn on(&self, matches: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Rule {
        let faults = self.clone();
        Rule { faults, matches: Arc::new(matches), skip: 0, left: None, probability: 1.0, lasting: None }
    }

    /// Stops the caller at a call, counted from 1: from then on no call is answered any more, as if the process had
    /// died. [`Faults::stopped`] tells when that has happened.
    pub fn stop_at(&self, call: usize, when: When) {
        self.lock().stop_at = Some((call, when));
    }

    /// Waits until the caller has been stopped.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`.
        let _ = self.stopped.subscribe().wait_for(|stopped| *stopped).await;
    }

    /// Whether the caller has been stopped.
    pub fn is_stopped(&self) -> bool {
        *self.stopped.borrow()
    }

    /// Pauses the caller at a call, counted from 1: this call and all later ones are held back, and so is what open
    /// watches and logs deliver, until [`Faults::wake`]. [`Faults::paused`] tells when the call has come.
    pub fn pause_at(&self, call: usize) {
        self.lock().pause_at = Some(call);
    }

    /// Waits until the caller has been paused.
    pub async fn paused(&self) {
        let _ = self.pause.subscribe().wait_for(|pause| *pause != Pause::NotYet).await;
    }

    /// Ends the pause: calls that were held back reach the service now, unless the caller has given them up.
    pub fn wake(&self) {
        self.lock().pause_at = None;
        self.pause.send_replace(Pause::Woken);
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// How many calls the rules have hit so far.
    pub fn hits(&self) -> usize {
        self.lock().hits
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call and says what becomes of it.
    fn judge(&self, call: Call) -> Verdict {
        let mut state = self.lock();
        state.calls.push(call.clone());
        let number = state.calls.len();
        if let Some((at, when)) = state.stop_at
            && number >= at
        {
            // Whatever comes after the last call comes too late.
            return Verdict::Stop(if number == at { when } else { When::Before });
        }
        if state.pause_at.is_some_and(|at| number >= at) {
            self.pause.send_replace(Pause::Paused);
            return Verdict::Hold;
        }
        let now = Instant::now();
        let State { rules, random, hits, .. } = &mut *state;
        for rule in rules.iter_mut().filter(|rule| rule.left != Some(0)) {
            let is_over = matches!((rule.first_hit, rule.lasting), (Some(first), Some(span)) if now >= first + span);
            if is_over || !(rule.matches)(&call) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            if rule.probability < 1.0 && random.f64() >= rule.probability {
                continue;
            }
            rule.left = rule.left.map(|left| left - 1);
            rule.first_hit.get_or_insert(now);
            *hits += 1;
            return Verdict::Fail(rule.fault.clone());
        }
        Verdict::Pass
    }
}

impl Rule {
    /// Lets the first calls through.
    pub fn skip(mut self, calls: usize) -> Self {
        self.skip = calls;
        self
    }

    /// Hits this many calls and no more.
    pub fn times(mut self, calls: usize) -> Self {
        self.left = Some(calls);
        self
    }

    /// Hits a call with this probability.
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = probability;
        self
    }

    /// Hits calls for this long, from the first hit on, and none after that. The time is tokio's.
    pub fn lasting(mut self, span: Duration) -> Self {
        self.lasting = Some(span);
        self
    }

    /// What happens to the calls. The rule holds from now on.
    pub fn fail(self, fault: Fault) {
        let Self { faults, matches, skip, left, probability, lasting } = self;
        let rule = RuleState { matches, skip, left, probability, lasting, first_hit: None, fault };
        faults.lock().rules.push(rule);
    }
}

#[cfg(test)]
mod tests;
