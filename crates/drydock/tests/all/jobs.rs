//! Jobs and CronJobs as a client sees them. What is expected was recorded from a real cluster (Kubernetes 1.34).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod changes;
mod cron;
mod endings;
mod indexed;
mod lab;
mod laws;
mod many;
mod plain;
mod policies;
