
use builtin;
use str;

set edit:completion:arg-completer[trayscan] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'trayscan'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'trayscan'= {
            cand --color 'When to use colour [`NO_COLOR` turns `auto` off]'
            cand --error-format 'How an error is shown: lines for people, or one JSON object as the last line'
            cand -q 'Show errors only'
            cand --quiet 'Show errors only'
            cand -v 'Tell more; twice: every request'
            cand --verbose 'Tell more; twice: every request'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
            cand serve 'Run the batch scan service on this machine'
            cand completions 'Print a completion script for a shell'
            cand man 'Print a manual page (roff)'
        }
        &'trayscan;serve'= {
            cand --listen 'Address and port to listen on; port 0 picks a free one'
            cand -f 'How the address and the credentials are printed: lines for people, or one JSON line'
            cand --format 'How the address and the credentials are printed: lines for people, or one JSON line'
            cand --batches 'How many batches to make up'
            cand --seed 'What the made-up batches and the faults grow from'
            cand --client-id 'The client identifier to accept'
            cand --client-secret 'The client secret to accept [default: a new random one]'
            cand --token-ttl 'How long a token lives'
            cand --page-size 'Batches in a page of version 2'
            cand --v1-limit 'The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse` [default: no limit, or 1000 with a fault of version 1]'
            cand --fault 'Misbehave on purpose; repeatable (`--help` lists the faults)'
            cand --color 'When to use colour [`NO_COLOR` turns `auto` off]'
            cand --error-format 'How an error is shown: lines for people, or one JSON object as the last line'
            cand -q 'Show errors only'
            cand --quiet 'Show errors only'
            cand -v 'Tell more; twice: every request'
            cand --verbose 'Tell more; twice: every request'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'trayscan;completions'= {
            cand --color 'When to use colour [`NO_COLOR` turns `auto` off]'
            cand --error-format 'How an error is shown: lines for people, or one JSON object as the last line'
            cand -q 'Show errors only'
            cand --quiet 'Show errors only'
            cand -v 'Tell more; twice: every request'
            cand --verbose 'Tell more; twice: every request'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'trayscan;man'= {
            cand --color 'When to use colour [`NO_COLOR` turns `auto` off]'
            cand --error-format 'How an error is shown: lines for people, or one JSON object as the last line'
            cand -q 'Show errors only'
            cand --quiet 'Show errors only'
            cand -v 'Tell more; twice: every request'
            cand --verbose 'Tell more; twice: every request'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
    ]
    $completions[$command]
}
