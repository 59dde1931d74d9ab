//! What is in the bucket of a server, without our own code.

use futures_util::TryStreamExt;
use object_store::ObjectStore;

use crate::servers::Weed;

impl Weed {
    /// Returns the names in the bucket that have a word in them.
    pub(crate) fn list(&self, word: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let store = self.store();
        let found = runtime
            .unwrap()
            .block_on(store.list(None).try_collect::<Vec<_>>());
        let names = found
            .unwrap()
            .into_iter()
            .map(|found| found.location.to_string());
        names.filter(|name| name.contains(word)).collect()
    }

    /// Returns the bucket.
    pub(crate) fn store(&self) -> object_store::aws::AmazonS3 {
        let builder = object_store::aws::AmazonS3Builder::new()
            .with_bucket_name("remotes")
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_region("here")
            .with_allow_http(true)
            .with_access_key_id("any")
            .with_secret_access_key("any");
        builder.build().unwrap()
    }
}
