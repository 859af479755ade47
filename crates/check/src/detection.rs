//! Which versions a server speaks.

use rehearse_client::{ConnectError, ServerParams, Target};
use rehearse_protocol::{Era, Trace, Version};
use serde_json::Value;

use crate::{CheckOptions, lane::Lane, options::Budget};

/// A server that speaks a version, and the lane on which it said so.
pub(crate) struct Spoken {
    pub(crate) version: Version,
    /// The result of `initialize` or `server/discover`.
    pub(crate) hello: Value,
    pub(crate) lane: Lane,
}

/// What came of an attempt to speak one version.
pub(crate) enum Attempt {
    Spoken(Box<Spoken>),
    /// The server answered, but does not speak it. The versions that it offers, and the trace.
    NotSpoken {
        offered: Vec<Version>,
        trace: Trace,
    },
    /// There was no connection.
    Failed(ConnectError),
}

/// Tries to speak a version on a connection of its own.
pub(crate) async fn attempt(
    params: &ServerParams,
    version: Version,
    options: &CheckOptions,
    budget: Budget,
) -> Attempt {
    let mut lane = match Lane::open(params, version, options, budget).await {
        Ok(lane) => lane,
        Err(error) => return Attempt::Failed(error),
    };
    let hello = lane.shake_hands().await;
    let spoken = lane.version();
    match hello {
        Some(hello) if version.era() == Era::Modern => {
            let offered = supported(&hello);
            // A fault in the details of the result does not make the server one of another era.
            if offered.is_empty() || offered.contains(&version) {
                return Attempt::Spoken(Box::new(Spoken { version, hello, lane }));
            }
            Attempt::NotSpoken { offered, trace: lane.close().await }
        }
        Some(hello) if spoken == version => {
            let is_known = hello["protocolVersion"].as_str().is_none_or(|text| text.parse::<Version>().is_ok());
            if is_known {
                return Attempt::Spoken(Box::new(Spoken { version, hello, lane }));
            }
            Attempt::NotSpoken { offered: Vec::new(), trace: lane.close().await }
        }
        Some(_) => Attempt::NotSpoken { offered: vec![spoken], trace: lane.close().await },
        None => Attempt::NotSpoken { offered: Vec::new(), trace: lane.close().await },
    }
}

fn supported(hello: &Value) -> Vec<Version> {
    let versions = hello["supportedVersions"].as_array().into_iter().flatten();
    versions.filter_map(|version| version.as_str()?.parse().ok()).collect()
}

/// The versions that a transport carries, newest first.
pub(crate) fn candidates(target: &Target, options: &CheckOptions) -> Vec<Version> {
    let wanted = |version: &Version| options.versions.is_empty() || options.versions.contains(version);
    let carried = Version::ALL.into_iter().rev().filter(|version| target.transport().carries(*version));
    carried.filter(wanted).collect()
}
