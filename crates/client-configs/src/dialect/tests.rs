use super::*;

#[test]
fn every_dialect_is_complete() {
    for dialect in all() {
        assert_eq!(by_name(dialect.name).map(|it| it.name), Some(dialect.name), "each name is unique");
        let has = |wanted: fn(&Field) -> bool| dialect.keys.iter().any(|key| wanted(&key.field));
        assert!(has(|field| matches!(field, Field::Command | Field::CommandLine)), "{}", dialect.name);
        assert_eq!(
            dialect.timeout.is_some(),
            has(|field| matches!(field, Field::Timeout | Field::CallTimeout | Field::StartTimeout)),
            "{}",
            dialect.name
        );
        let has_remote = dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio);
        assert_eq!(
            has_remote,
            has(|field| matches!(field, Field::Url(_))) || dialect.name == "engine",
            "{}",
            dialect.name
        );
    }
}
