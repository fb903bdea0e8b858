//! URI-Key profiles: the holdings of an archive, counted under the keys of a policy.
//!
//! ```text
//! counted URI-Rs ─ cut ─ one counter per policy ─ profiles ─ merge ─ profile
//!                                                     └─ wildcards ─ map
//! ```

mod build;
mod check;
mod key_cut;
mod key_presence;
mod line;
mod merge;
mod wildcard;

pub use build::{ProfileForm, write_profiles};
pub use check::{ProfileReport, check_profile};
pub use key_presence::KeyPresence;
pub use line::{Holding, ProfileReader};
pub use merge::merge_profiles;
pub use wildcard::profiles_to_map;
