//! Tasks that end with their owner.

use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
pub struct OwnedTask(JoinHandle<()>);

impl OwnedTask {
    /// Starts the task.
    pub fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(task))
    }
}

impl Drop for OwnedTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
