# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_trayscan_global_optspecs
    string join \n q/quiet v/verbose color= message-format= h/help V/version
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

complete -c trayscan -n "__fish_trayscan_needs_command" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_needs_command" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_needs_command" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_needs_command" -s V -l version -d 'Print version'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "export" -d 'Fetch batches and write them to a file or to standard output'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "sync" -d 'Keep a local archive in sync with the service'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "summary" -d 'Show statistics per crop, month, week, day or person'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "report" -d 'Write an HTML report with charts, for the browser or for print'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "verify" -d 'Check a file against a manifest, another file or the service'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "check" -d 'Test the settings, the connection and the credentials'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "serve" -d 'Run the batch scan service locally, with demo data or from an archive'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "login" -d 'Set up a profile: asks for base URL, client ID and secret, tests them and saves them'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "config" -d 'Show or change settings, or create a config file'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "completions" -d 'Print a shell completion script'
complete -c trayscan -n "__fish_trayscan_needs_command" -f -a "man" -d 'Print a manual page in roff format'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l fields -d 'Fields to write, in this order (a,b,c), or to leave out (-a,-b)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l sort -d 'Sort by one or more fields; `:desc` sorts in descending order [default: order of the service]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l limit -d 'Stop after N batches' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s o -l output -d 'File to write; `.gz` or `.zst` compresses it [default: standard output]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s f -l format -d 'Output format [default: from the extension of FILE]' -r -f -a "json\t''
ndjson\t''
csv\t''
tsv\t''
table\t''
xlsx\t''
parquet\t''
sqlite\t''
singer\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l manifest -d 'Write a manifest (JSON) with the request, counts and checksums' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l state -d 'singer: continue from the last STATE of an earlier run; an empty file starts anew' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l lookback -d 'singer: with --state, fetch this much again to find late and changed batches [default: 7d]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l delimiter -d 'csv, tsv: cell separator [default: comma in csv, tab in tsv]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l no-clobber -d 'Do not overwrite an existing file'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l only-changed -d 'Rewrite only the files whose batches changed since the manifest (with --archive)'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l success-marker -d 'Write an empty `_SUCCESS` file last, in the folder before the first {…} of `-o`'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l numbers -d 'json, ndjson: write decimals as numbers instead of strings, with the same digits'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l decimal-comma -d 'csv, tsv: write a decimal comma; csv then separates cells with `;`'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l bom -d 'csv, tsv: start with a byte order mark'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l no-header -d 'csv, tsv: leave out the header line'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l excel -d 'csv, tsv: write for Excel: byte order mark, CRLF, no cell read as a formula'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l start -l since -d 'First date of the archive, or of the changes with --changes' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l lookback -d 'Fetch this much again to find late and changed batches' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l wait -d 'Wait this long if another run uses the archive [default: do not wait]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l max-age -d 'Exit with code 10 if the archive has gaps, or its complete part ends longer ago than this' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s f -l format -d 'Format of --status or --changes' -r -f -a "text\t''
table\t''
json\t''
ndjson\t''
csv\t''
prometheus\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l full -d 'Fetch everything again, and find batches that are gone from the service'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l lenient -d 'Keep invalid batches as received, with null columns, instead of failing'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l rebind -d 'Record the base URL and the client ID of the settings as those of the archive; sends no request'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l status -d 'Show which days are complete, and the last runs; sends no request'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l changes -d 'List added, changed and vanished batches; sends no request'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand sync" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l by -d 'Group by these fields; several make one group per combination' -r -f -a "crop_type\t'Crop'
month\t'Month of creation, such as 2026-05'
week\t'ISO week of creation, such as 2026-W07'
day\t'Day of creation, such as 2026-05-01'
scanned_by_email\t'Person who scanned; shows e-mail addresses'"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s f -l format -d 'Output format [default: from the extension of FILE, else table]' -r -f -a "table\t''
json\t''
csv\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s o -l output -d 'File to write; `.gz` or `.zst` compresses it [default: standard output]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l fail-on -d 'End with code 10 if a crop is down, misses a target, or has a batch that needs attention' -r -f -a "down\t'A crop is down against its own four weeks before'
target\t'The newest week of a crop misses one of your targets'
attention\t'A batch of the newest week needs attention, as in the report'"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l no-clobber -d 'Do not overwrite an existing file'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand summary" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l where -d 'Keep only batches that match, such as \'crop_type=Tomato\'; repeat to add conditions' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s o -l output -d 'File to write, such as report.html [default: standard output, unless it is a terminal]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l step -d 'Length of the periods to compare' -r -f -a "day\t''
week\t'ISO weeks, Monday to Sunday'
month\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l title -d 'Title of the page, such as the name of the nursery' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l archive -d 'Read batches from an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l lenient -d 'Keep invalid batches where the format allows it, instead of failing'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l fail-on-empty -d 'Exit with code 9 if no batch matches'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l no-clobber -d 'Do not overwrite an existing file'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l open -d 'Open the page in the browser'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l emails -d 'Show the e-mail address of the person who scanned each batch that needs attention'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l fields -d 'Compare only these fields (a,b,c), or all but these (-a,-b)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l manifest -d 'Compare with a manifest from `export --manifest`' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l against -d 'Compare with another file, in any format; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l archive -d 'Compare with an archive of `trayscan sync` instead of the service' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s f -l format -d 'Output format' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l start -l since -d 'First date, such as 2026-05-01, 2026-05, today or 7d (7 days ago)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l end -l until -d 'Last date, in the same forms; includes the whole period' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l period -d 'One period, such as yesterday, last-month, 2026-W18 or 2026-Q2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l progress -d 'When to show progress; `auto` shows it on a terminal' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l service -d 'Compare with the service, for the request in the manifest, or for --start and --end or --period'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s f -l format -d 'Output format' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -l probe -d 'Also find out how the service behaves, with a few dozen read-only requests'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l listen -d 'Address and port to listen on; port 0 picks a free port' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s f -l format -d 'Format of the printed URL and credentials; `json` prints one line' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l archive -d 'Serve the batches of an archive of `trayscan sync`, and follow its changes' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l batches -d 'Number of batches to generate' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l seed -d 'Seed of the generated batches and of the faults' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-id -d 'Client ID to accept; TRAYSCAN_CLIENT_ID is ignored here' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l client-secret -d 'Client secret to accept; TRAYSCAN_CLIENT_SECRET is ignored here [default: random]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l token-ttl -d 'Lifetime of a token' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l page-size -d 'Batches per page in version 2' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l v1-limit -d 'Maximum number of batches in version 1 [default: none, or 1000 with a v1 fault]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l fault -d 'Simulate a fault; can be repeated (see --help for the list)' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l profile -d 'Profile to create or change [default: `default_profile` of the config file, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l force -d 'Save the profile even if the service cannot be reached or refuses the credentials'
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand login" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -f -a "path" -d 'Print the path of the config file'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -f -a "show" -d 'Print the current settings and their sources, with secrets masked'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -f -a "init" -d 'Create a config file with an explanation of every key'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and not __fish_seen_subcommand_from path show init set" -f -a "set" -d 'Change one key of a profile; creates the config file and the profile if needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l base-url -d 'URL of the service, such as https://scan.example.com/api' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-id -d 'Client ID' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-secret -d 'Client secret; prefer --client-secret-file or the variable' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l client-secret-file -d 'File that contains the client secret; `-` reads standard input' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l api -d 'API version [default: auto]' -r -f -a "auto\t''
v1\t''
v2\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l parallel -d 'Maximum number of parallel requests [default: 4]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l retries -d 'Number of retries per request [default: 5]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l retry-wait -d 'Delay after a 503 (±25 %); other errors back off from a quarter of it [default: 4s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l timeout -d 'Time out if no data arrives for this long [default: 60s]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l ca-cert -d 'Extra CA certificate to trust (PEM)' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l allow-http -d 'Allow unencrypted http to other machines' -r -f -a "true\t''
false\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l time-zone -d 'Time zone of days, weeks, months and years, such as Europe/Amsterdam [default: UTC]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l profile -d 'Profile in the config file [default: its `default_profile`, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Config file to use [default: see `trayscan config path`]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -l sandbox -d 'Use demo data from a built-in server; no setup needed'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -l profile -d 'Profile to change [default: `default_profile` of the config file, else `default`]' -r -f
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -l config -d 'Path of the config file [default: in the config folder of the platform]' -r -F
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand config; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l color -d 'When to use colour' -r -f -a "auto\t''
always\t''
never\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -l message-format -d 'Format of messages on standard error' -r -f -a "text\t''
json\t''"
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s q -l quiet -d 'Show only warnings and errors; -qq: only errors'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s v -l verbose -d 'More output; -vv logs every request'
complete -c trayscan -n "__fish_trayscan_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
