//! Scenarios that models play.

use crate::rehearse::{Rehearse, Run};

const SERVER: &str = "
tools:
  - name: forecast
    description: The weather of a city.
    inputSchema: { type: object, properties: { city: { type: string } }, required: [city] }
    reply: 'Rain in {{ args.city }}.'
  - { name: find_place, description: 'Finds a place, and its weather.', reply: { error: No place. } }
";
const RIGHT: &str =
    "rules: [{ turns: [{ calls: [{ tool: forecast, args: { city: Paris } }] }, 'It says: {{ result }}'] }]";
const WRONG: &str = "rules: [{ turns: [{ calls: [{ tool: find_place }] }, 'It says: {{ result }}'] }]";
const BROKEN: &str = "rules: [{ reply: { error: { status: 401, message: No such key. } } }]";
const EVAL: &str = "
servers: { weather: { mock: server.yaml } }
matrix: { transport: memory, protocol: negotiated }
models:
  right: scripted:right.yaml
  wrong: scripted:wrong.yaml
  broken: scripted:broken.yaml
  real: { model: 'openai:g', price: { input: 3, output: 15, date: 2026-11-01 } }
steps:
  - agent: { prompt: Is it raining in Paris?, models: [MODELS], runs: 2 }
    expect: { calls: forecast, text: { contains: Rain } }
";

/// The files of the eval with these models.
fn files(models: &str) -> Rehearse {
    let eval = EVAL.replace("MODELS", models);
    let files = [
        ("server.yaml", SERVER),
        ("right.yaml", RIGHT),
        ("wrong.yaml", WRONG),
        ("broken.yaml", BROKEN),
        ("evals/rain.yaml", &eval.replace(": server.yaml", ": ../server.yaml").replace("scripted:", "scripted:../")),
    ];
    files.iter().fold(Rehearse::new(), |eval, (name, text)| eval.file(name, text))
}

/// A run of the eval with these models.
fn eval(models: &str, args: &[&str]) -> Rehearse {
    files(models).args(["run", "evals"].iter().chain(args).copied())
}

/// The same as the command of `rehearse model right.yaml --exec`, which takes the place of a provider.
fn with_provider(models: &str, args: &[&str]) -> Rehearse {
    let run = [Rehearse::BINARY, "run", "evals"];
    files(models).args(["model", "right.yaml", "--exec", "--"].iter().chain(&run).chain(args).copied())
}

/// Runs whose results have every member that evals add to a report.
pub(crate) fn reports() -> Vec<Run> {
    let before = eval("right", &["--format", "json"]).run().code(0);
    let earlier = before.stdout_text().replace("\"passed\": true", "\"passed\": false");
    let compared = eval("right", &["--format", "json", "--against", "b.json"]).file("b.json", &earlier).run().code(0);
    let failed = eval("wrong, broken", &["--format", "json"]).run().code(3);
    let priced = with_provider("real", &["--format", "json"]).run().code(0);
    let otherwise = eval("right", &["--format", "json", "--against", "b.json"]);
    let otherwise = otherwise.file("b.json", &before.stdout_text().replace("\"forecast\"", "\"other\"")).run().code(0);
    vec![before, compared, failed, priced, otherwise]
}

#[test]
fn a_red_eval_says_how_often_and_which_tool_was_called_instead() {
    let run = eval("right, wrong", &["--report", "r.md"]).run().code(1);
    for text in [
        "wrong: 0 of 2 runs pass, 2 must",
        "wrong, 2 times: calls: expected `forecast`, found `find_place`",
        "right · rain:10     2/2  100 % (34–100)    1.0       0",
        "rain:10: wrong called `find_place` instead of `forecast` 2 of 2 times",
        "`forecast`: The weather of a city.",
        "`find_place`: Finds a place, and its weather.",
    ] {
        assert!(run.stdout_text().contains(text), "{text}: {}", run.stdout_text());
    }
    assert!(run.read("r.md").contains("| right · rain:10 | 2/2 | 100 % (34–100) |"), "{}", run.read("r.md"));
    eval("right, wrong", &["--model", "right"]).run().code(0);
    let run = eval("right, broken", &[]).run().code(3);
    assert!(run.stdout_text().contains("broken cannot be asked: "), "{}", run.stdout_text());
    assert!(run.stdout_text().contains("2/2"), "{}", run.stdout_text());
}

#[test]
fn an_eval_is_recorded_once_and_played_without_a_key() {
    let recorded = with_provider("real", &["--record-models", "answers", "--max-cost", "0.5"]).run().code(0);
    assert!(recorded.stdout_text().contains("providers were asked 4 times: "), "{}", recorded.stdout_text());
    let folder = std::fs::read_dir(recorded.path("answers/real")).expect("a folder");
    let names = folder.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let files: Vec<_> = names.map(|name| (recorded.read(&format!("answers/real/{name}")), name)).collect();
    assert_eq!(files.len(), 4, "two answers in each of two runs");
    let play = |server: &str| {
        let play = eval("real", &["--play-models", "answers"]).file("server.yaml", server);
        files.iter().fold(play, |play, (text, name)| play.file(&format!("answers/real/{name}"), text)).run()
    };
    play(SERVER).code(0);
    let changed = play(&SERVER.replace("The weather of", "The forecast for")).code(3);
    let text = changed.stdout_text().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "the answer of real is not recorded (run 1)",
        r#"/tools/0/description: it has "The weather of a city.", the request has "The forecast for a city.""#,
        "only recorded answers are played",
        "again: rehearse run evals/rain.yaml --play-models answers",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_an_eval_needs_is_checked_before_the_run() {
    let error = |models: &str, args: &[&str]| eval(models, args).run().stdout("").code(2).stderr().to_owned();
    let missing = error("real", &[]);
    assert!(missing.contains("the model `real`: API key missing: OPENAI_API_KEY not set"), "{missing}");
    assert!(missing.contains("--play-models FOLDER"), "{missing}");
    let unknown = error("right", &["--model", "rigth"]);
    assert!(unknown.contains("no scenario has it in `models`; did you mean `right`?"), "{unknown}");
    let repeated = error("right", &["--repeat", "2"]);
    assert!(repeated.contains("repeat a step with its `runs`"), "{repeated}");
    let other = error("right", &["--against", "right.yaml"]);
    assert!(other.contains("--against right.yaml: "), "{other}");
    let cheap = eval("real", &["--max-cost", "1", "--record-models", "a"]);
    let price = "{ model: 'openai:g', price: { input: 3, output: 15, date: 2026-11-01 } }";
    let free = EVAL.replace("MODELS", "real").replace(price, "openai:g").replace("server.yaml", "../server.yaml");
    let cheap = cheap.file("evals/rain.yaml", &free.replace("scripted:", "scripted:../")).run().code(2);
    assert!(cheap.stderr().contains("the model `real` has no `price`, which --max-cost needs"), "{}", cheap.stderr());
}

#[test]
fn an_earlier_result_says_what_models_do_otherwise() {
    let before = eval("right", &["--format", "json"]).run().code(0);
    let otherwise = before.stdout_text().replacen("\"forecast\"", "\"find_place\"", 1);
    let compare = |earlier: &str| eval("right", &["--against", "b.json"]).file("b.json", earlier).run().code(0);
    let now = compare(&otherwise);
    assert!(
        now.stdout_text().contains("right: `forecast` is now called 2 of 2 times, before 1 of 2"),
        "{}",
        now.stdout_text()
    );
    let other = compare(&before.stdout_text().replace("Is it raining", "Was it raining"));
    assert!(
        other.stdout_text().contains("not compared, because one of both runs does not have it"),
        "{}",
        other.stdout_text()
    );
    let same = compare(before.stdout_text());
    assert!(
        same.stdout_text().contains("compared with the earlier run: no change (1 compared)"),
        "{}",
        same.stdout_text()
    );
}
