//! The options for running JVMs on systems on which these cannot be inspected: none.

use super::HistogramSource;

/// No options.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProcessArgs {}

impl ProcessArgs {
    /// Does nothing, as there are no options.
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns an error.
    pub(crate) fn with_jvm(
        &self,
        pid: u32,
        _: &mut dyn FnMut(&mut dyn HistogramSource) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        anyhow::bail!("{pid} is not a file; class histograms of running JVMs require Linux")
    }
}
