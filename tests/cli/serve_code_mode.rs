//! `rehearse serve` with code mode.

use serde_json::json;

use crate::serve::{assert_clean, call, config, greet, result, story};

/// Where there is no Go, programs are in JavaScript.
#[test]
fn in_code_mode_a_program_calls_the_tools_with_connections_of_its_own() {
    let model = "\
rules:
- when: { prompt: { contains: loop } }
  turns:
  - calls:
    - tool: execute_code
      args:
        code: \"let all = []; for (const at of ['sea', 'land']) all.push(await look({ at })); console.log('done'); return all.join(', ');\"
        executionTimeout: 20
  - { calls: [{ tool: final_answer, args: { verdict: '{{ result }} / {{ tools }}' } }] }
- when: { prompt: { contains: program } }
  turns:
  - { calls: [{ tool: execute_code, args: { code: 'await count({}); return await count({});', executionTimeout: 20 } }] }
  - { calls: [{ tool: execute_code, args: { code: 'return await count({});', executionTimeout: 20 } }] }
  - { calls: [{ tool: final_answer, args: { verdict: '{{ result }}' } }] }
- when: { prompt: { contains: tally } }
  turns: [{ calls: [{ tool: tally }] }, { calls: [{ tool: tally }] }, { calls: [{ tool: final_answer, args: { verdict: '{{ result }}' } }] }]
- when: { prompt: { contains: throws } }
  turns:
  - { calls: [{ tool: execute_code, args: { code: \"throw new Error('no')\", executionTimeout: 20 } }] }
  - { calls: [{ tool: final_answer, args: { verdict: '{{ result }}' } }] }
- reply: { calls: [{ tool: execute_code, args: { code: 'while (true) await hang({});', executionTimeout: 200 } }] }
";
    let mut config = config();
    config["defaults"]["codeMode"] = json!({ "enabled": true, "excludedTools": ["die", "tally"] });
    let story = story(&config).file("model.yaml", model).env("PATH", "/nonexistent");
    let mut running = story.args(["serve", "--config", "coder.cpe.json"]).start();
    greet(&mut running);
    call(&mut running, 2, &json!({ "prompt": "loop" }));
    let answer = result(&mut running, 2);
    let verdict = answer["structuredContent"]["verdict"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(
        verdict.starts_with("done\n\nat sea, at land / ") || verdict.starts_with("done\nat sea, at land / "),
        "{verdict}"
    );
    // The model has the tool of code mode and the excluded one, and no other.
    assert!(verdict.contains("execute_code") && verdict.contains("die") && !verdict.contains("look"), "{verdict}");
    call(&mut running, 3, &json!({ "prompt": "throws" }));
    let answer = result(&mut running, 3);
    assert!(
        answer["structuredContent"]["verdict"].as_str().is_some_and(|text| text.contains("execution error: ")),
        "{answer}"
    );
    // A program has connections of its own; an excluded tool is called over those of the run.
    for (id, prompt, last) in [(4, "program", "call 1"), (5, "tally", "call 2")] {
        call(&mut running, id, &json!({ "prompt": prompt }));
        assert_eq!(result(&mut running, id)["structuredContent"]["verdict"], last);
    }
    call(&mut running, 6, &json!({ "prompt": "hang" }));
    running.stdout_line("turn 1");
    running.close_stdin();
    assert_clean(running);
}
