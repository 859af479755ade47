//! What a report is of: a project at a commit.

/// The project, commit and branch that a CI system works on, as far as it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Such as `owner/name`.
    pub project: Option<String>,
    /// The whole hash.
    pub commit: Option<String>,
    pub branch: Option<String>,
}

/// The variables of CI systems: project, commit, branch. The branch of a pull request comes before that of its merge.
const VARIABLES: [[&[&str]; 3]; 7] = [
    // GitHub Actions
    [&["GITHUB_REPOSITORY"], &["GITHUB_SHA"], &["GITHUB_HEAD_REF", "GITHUB_REF_NAME"]],
    // GitLab
    [&["CI_PROJECT_PATH"], &["CI_COMMIT_SHA"], &["CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_REF_NAME"]],
    // Azure Pipelines
    [
        &["BUILD_REPOSITORY_NAME"],
        &["BUILD_SOURCEVERSION"],
        &["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCHNAME"],
    ],
    // CircleCI
    [&["CIRCLE_PROJECT_REPONAME"], &["CIRCLE_SHA1"], &["CIRCLE_BRANCH"]],
    // Buildkite
    [&["BUILDKITE_PIPELINE_SLUG"], &["BUILDKITE_COMMIT"], &["BUILDKITE_BRANCH"]],
    // Bitbucket Pipelines
    [&["BITBUCKET_REPO_FULL_NAME"], &["BITBUCKET_COMMIT"], &["BITBUCKET_BRANCH"]],
    // Jenkins
    [&["JOB_NAME"], &["GIT_COMMIT"], &["CHANGE_BRANCH", "GIT_BRANCH"]],
];

impl Origin {
    /// What the variables of a CI system say: those of the first system that names a commit.
    pub fn from_variables(value: impl Fn(&str) -> Option<String>) -> Origin {
        let first = |names: &[&str]| names.iter().find_map(|name| value(name).filter(|text| !text.is_empty()));
        let origins = VARIABLES.iter().map(|[project, commit, branch]| Origin {
            project: first(project),
            commit: first(commit),
            branch: first(branch),
        });
        origins.into_iter().find(|origin| origin.commit.is_some()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_of_a_pull_request_is_named() {
        let origin = |set: &[(&str, &str)]| {
            Origin::from_variables(|name| {
                set.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let set = [("GITHUB_REPOSITORY", "o/n"), ("GITHUB_SHA", "abc"), ("GITHUB_REF_NAME", "7/merge")];
        assert_eq!(origin(&set).branch.as_deref(), Some("7/merge"));
        let pull = origin(&[&set[..], &[("GITHUB_HEAD_REF", "fix")]].concat());
        assert_eq!(
            pull,
            Origin { project: Some("o/n".into()), commit: Some("abc".into()), branch: Some("fix".into()) }
        );
        assert_eq!(origin(&[("CI_PROJECT_PATH", "g/p"), ("CI_COMMIT_SHA", "d")]).project.as_deref(), Some("g/p"));
        // A job of Jenkins has its name without a repository too.
        assert_eq!(origin(&[("JOB_NAME", "nightly")]), Origin::default());
    }
}
