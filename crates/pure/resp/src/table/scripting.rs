//! Commands of scripts, which are answered without having any.

use super::*;

rows! {
    "scripting"

    Script "script" -2 [] [] Door
        [] "2.6.0" "Commands about scripts.";
    ScriptFlush "script|flush" -2 [NOSCRIPT] [SCRIPTING] Door
        [] "2.6.0" "Answers OK: there are no scripts.";
    Function "function" -2 [] [] Door
        [] "7.0.0" "Commands about functions.";
    FunctionFlush "function|flush" -2 [WRITE NOSCRIPT] [SCRIPTING] Door
        [] "7.0.0" "Answers OK: there are no functions.";
}
