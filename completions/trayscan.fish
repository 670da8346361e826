# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_trayscan_global_optspecs
    string join \n q/quiet v/verbose color= error-format= h/help V/version
end

function __fish_trayscan_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_trayscan_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_trayscan_using_subcommand
    set -l cmd (__fish_trayscan_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c trayscan -n "__fish_trayscan_needs_command" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_needs_command" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_needs_command" -s V -l version -d 'Print version'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "export" -d 'Fetch batches and write them in one format'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "sync" -d 'Bring a local archive up to date, again and again'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "summary" -d 'Show figures per crop, month, week, day or person'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "report" -d 'Write one HTML page with charts, for any browser and for paper'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "verify" -d 'Prove that a file holds exactly what a manifest, another file or the service holds'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "check" -d 'Try credentials and service, and tell what was found'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "serve" -d 'Run the batch scan service on this machine'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "config" -d 'Show where settings come from, or begin a config file'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "man" -d 'Print a manual page (roff)'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l end -l until -d 'Last date, in the same forms; a day, month or year counts whole' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l where -d 'Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l fields -d 'Fields to write, in this order; or fields to leave out, each with a leading minus' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l sort -d 'Sort by a field, descending with `:desc` [default: the order of the service]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l limit -d 'End after so many batches' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s o -l output -d 'File to write; `.gz` or `.zst` at its end compresses [default: standard output]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s f -l format -d 'Format [default: by the ending of FILE, else table on a terminal and ndjson in a pipe]' -r -f -a "json\t''
ndjson\t''
csv\t''
tsv\t''
table\t''
xlsx\t''
parquet\t''
sqlite\t''
singer\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l manifest -d 'Write a receipt (JSON) of the export: what was asked for, counts, digests' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l state -d 'singer: continue from the STATE that an earlier run ended with, or from an empty file' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l lookback -d 'singer: how much before that is sent again, for batches that came late or changed [default: 7d]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l delimiter -d 'csv, tsv: what stands between cells [default: a comma, or a tab]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l archive -d 'Take batches from an archive that `trayscan sync` keeps; asks no service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l progress -d 'When to show progress; `auto`: when standard error is a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l lenient -d 'Carry on past batches that break the interface, as far as the format can'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l fail-on-empty -d 'End with code 9 when nothing matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l no-clobber -d 'Do not replace a file that exists'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l only-changed -d 'Rewrite only the files in which batches changed since the manifest (with --archive)'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l success-marker -d 'Write an empty `_SUCCESS` file last, in the folder before the first {…} of `-o`'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l numbers -d 'json, ndjson: decimals as numbers, with the same digits'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l decimal-comma -d 'csv, tsv: a decimal comma (and `;` between cells)'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l bom -d 'csv, tsv: begin with a byte order mark'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l no-header -d 'csv, tsv: no line of names'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l excel -d 'csv, tsv: for a double click in Excel: byte order mark, CRLF, no cell runs as a formula'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l start -l since -d 'Where a new archive begins, or an old one is to reach back to; with `--changes`, from when on' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l lookback -d 'How much of what is complete is looked at again, for batches that came late or changed' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l wait -d 'How long to wait for another run that holds the archive [default: not at all]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s f -l format -d 'Format of the list [default: table on a terminal, else ndjson; of `--status`: table]' -r -f -a "table\t''
json\t''
ndjson\t''
csv\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l progress -d 'When to show progress; `auto`: when standard error is a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l full -d 'Fetch all again, and find out which batches vanished from the service'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l lenient -d 'Carry on past batches that break the interface: as received, their columns null'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l status -d 'Show what is complete, day by day, and the last runs; asks no service'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l changes -d 'List what was added, what changed and what vanished; asks no service'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l by -d 'What makes a group; several, with commas between them, make one for each combination' -r -f -a "crop_type\t'The crop'
month\t'Month of creation (UTC), such as 2026-05'
week\t'ISO week of creation (UTC), such as 2026-W07'
day\t'Day of creation (UTC), such as 2026-05-01'
scanned_by_email\t'Who scanned; shows e-mail addresses'"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l end -l until -d 'Last date, in the same forms; a day, month or year counts whole' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l where -d 'Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s f -l format -d 'Format [default: by the ending of FILE, else table]' -r -f -a "table\t''
json\t''
csv\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s o -l output -d 'File to write; `.gz` or `.zst` at its end compresses [default: standard output]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l archive -d 'Take batches from an archive that `trayscan sync` keeps; asks no service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l progress -d 'When to show progress; `auto`: when standard error is a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l lenient -d 'Carry on past batches that break the interface, as far as the format can'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l fail-on-empty -d 'End with code 9 when nothing matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l no-clobber -d 'Do not replace a file that exists'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l end -l until -d 'Last date, in the same forms; a day, month or year counts whole' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l where -d 'Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s o -l output -d 'File to write, such as report.html [default: standard output, unless it is a terminal]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l step -d 'How long the steps are that are compared' -r -f -a "day\t''
week\t'ISO weeks, Monday to Sunday'
month\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l title -d 'What stands above the page, such as the name of the nursery' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l archive -d 'Take batches from an archive that `trayscan sync` keeps; asks no service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l progress -d 'When to show progress; `auto`: when standard error is a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l lenient -d 'Carry on past batches that break the interface, as far as the format can'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l fail-on-empty -d 'End with code 9 when nothing matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l no-clobber -d 'Do not replace a file that exists'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l emails -d 'Tell who scanned the batches that need attention [default: no e-mail address on the page]'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l fields -d 'Compare these fields only (a,b,c), or all but some (-a,-b)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l manifest -d 'Compare with the receipt that `export --manifest` wrote' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l against -d 'Compare with another file, in any format that can be verified; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l archive -d 'Compare with an archive that `trayscan sync` keeps, in place of the service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s f -l format -d 'How the result is shown' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l end -l until -d 'Last date, in the same forms; a day, month or year counts whole' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l progress -d 'When to show progress; `auto`: when standard error is a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l service -d 'Compare with what the service holds now: what the manifest asked for, or the dates given'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s f -l format -d 'How the findings are shown' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l probe -d 'Find out what the interface leaves open, with a few dozen requests that only read'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l listen -d 'Address and port to listen on; port 0 picks a free one' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s f -l format -d 'How the address and the credentials are printed: lines for people, or one JSON line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l archive -d 'Serve the batches of an archive that `trayscan sync` keeps, and follow it as it changes' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l batches -d 'How many batches to make up' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l seed -d 'Seed of the made-up batches and of the faults' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-id -d 'The client identifier to accept (variables are not read: they are for the real service)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-secret -d 'The client secret to accept [default: a new random one]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l token-ttl -d 'How long a token lives' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l page-size -d 'Batches in a page of version 2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l v1-limit -d 'The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse` [default: no limit, or 1000 with a fault of version 1]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l fault -d 'Misbehave on purpose; repeatable (`--help` lists the faults)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -f -a "path" -d 'Print where the config file is looked for'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -f -a "show" -d 'Print the settings that hold and where each comes from; secrets are masked'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init" -f -a "init" -d 'Begin a config file, with every key explained'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l config -d 'Config file [default: the platform\'s place for it]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l base-url -d 'Address of the service, such as `https://scan.example.com/api`' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-id -d 'The client identifier' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-secret -d 'The client secret; others may see it here: rather use a file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-secret-file -d 'File with the client secret; `-` for standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l api -d 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l parallel -d 'Requests at a time, at most [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l retries -d 'Times that a request is tried again [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l retry-wait -d 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l timeout -d 'Longest time without a byte arriving [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l ca-cert -d 'Certificate (PEM) to trust beside the system\'s' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-http -d 'Allow plain http to another machine' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l profile -d 'Profile of the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Config file [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l sandbox -d 'Use made-up batches from a service that runs for this command only; needs no set-up'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l config -d 'Config file [default: the platform\'s place for it]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l color -d 'When to use colour [`NO_COLOR` turns `auto` off]' -r -f -a "auto\t'On a terminal'
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l error-format -d 'How an error is shown: lines for people, or one JSON object as the last line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s q -l quiet -d 'Show errors only'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s v -l verbose -d 'Tell more; twice: every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
