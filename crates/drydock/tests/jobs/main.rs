//! Jobs and CronJobs as a client sees them. What is expected was recorded from a real cluster (Kubernetes 1.34).

mod lab;
mod plain;
