
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'trayscan' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'trayscan'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'trayscan' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('export', 'export', [CompletionResultType]::ParameterValue, 'Fetch batches and write them in one format')
            [CompletionResult]::new('sync', 'sync', [CompletionResultType]::ParameterValue, 'Bring a local archive up to date, again and again')
            [CompletionResult]::new('verify', 'verify', [CompletionResultType]::ParameterValue, 'Prove that a file holds exactly what a manifest, another file or the service holds')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Try credentials and service, and tell what was found')
            [CompletionResult]::new('serve', 'serve', [CompletionResultType]::ParameterValue, 'Run the batch scan service on this machine')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show where settings come from, or begin a config file')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print a completion script for a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print a manual page (roff)')
            break
        }
        'trayscan;export' {
            [CompletionResult]::new('--start', '--start', [CompletionResultType]::ParameterName, 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)')
            [CompletionResult]::new('--end', '--end', [CompletionResultType]::ParameterName, 'Last date, in the same forms; a day, month or year counts whole')
            [CompletionResult]::new('--until', '--until', [CompletionResultType]::ParameterName, 'Last date, in the same forms; a day, month or year counts whole')
            [CompletionResult]::new('--where', '--where', [CompletionResultType]::ParameterName, 'Keep batches where this holds, such as `crop_type=Tomato`; repeatable, all must hold')
            [CompletionResult]::new('--fields', '--fields', [CompletionResultType]::ParameterName, 'Fields to write, in this order; or fields to leave out, each with a leading minus')
            [CompletionResult]::new('--sort', '--sort', [CompletionResultType]::ParameterName, 'Sort by a field, descending with `:desc` [default: the order of the service]')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'End after so many batches')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'File to write; `.gz` or `.zst` at its end compresses [default: standard output]')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'File to write; `.gz` or `.zst` at its end compresses [default: standard output]')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Format [default: by the ending of FILE, else table on a terminal and ndjson in a pipe]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Format [default: by the ending of FILE, else table on a terminal and ndjson in a pipe]')
            [CompletionResult]::new('--manifest', '--manifest', [CompletionResultType]::ParameterName, 'Write a receipt (JSON) beside the export: what was asked for, counts, digests')
            [CompletionResult]::new('--state', '--state', [CompletionResultType]::ParameterName, 'singer: continue from the STATE that an earlier run ended with, or from an empty file')
            [CompletionResult]::new('--lookback', '--lookback', [CompletionResultType]::ParameterName, 'singer: how much before that is sent again, for batches that came late or changed [default: 7d]')
            [CompletionResult]::new('--delimiter', '--delimiter', [CompletionResultType]::ParameterName, 'csv, tsv: what stands between cells [default: a comma, or a tab]')
            [CompletionResult]::new('--archive', '--archive', [CompletionResultType]::ParameterName, 'Take batches from an archive that `trayscan sync` keeps; asks no service')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'Address of the service, such as `https://scan.example.com/api`')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret; others may see it here: rather use a file or the variable')
            [CompletionResult]::new('--client-secret-file', '--client-secret-file', [CompletionResultType]::ParameterName, 'File with the client secret; `-` for standard input')
            [CompletionResult]::new('--api', '--api', [CompletionResultType]::ParameterName, 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Requests at a time, at most [default: 4]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Times that a request is tried again [default: 5]')
            [CompletionResult]::new('--retry-wait', '--retry-wait', [CompletionResultType]::ParameterName, 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Longest time without a byte arriving [default: 60s]')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'Certificate (PEM) to trust beside the system''s')
            [CompletionResult]::new('--allow-http', '--allow-http', [CompletionResultType]::ParameterName, 'Allow plain http to another machine')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of the config file [default: its `default_profile`, else `default`]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: see `trayscan config path`]')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'When to show progress; `auto`: when standard error is a terminal')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('--lenient', '--lenient', [CompletionResultType]::ParameterName, 'Carry on past batches that break the interface, as far as the format can')
            [CompletionResult]::new('--fail-on-empty', '--fail-on-empty', [CompletionResultType]::ParameterName, 'End with code 9 when nothing matches')
            [CompletionResult]::new('--no-clobber', '--no-clobber', [CompletionResultType]::ParameterName, 'Do not replace a file that exists')
            [CompletionResult]::new('--numbers', '--numbers', [CompletionResultType]::ParameterName, 'json, ndjson: decimals as numbers, with the same digits')
            [CompletionResult]::new('--decimal-comma', '--decimal-comma', [CompletionResultType]::ParameterName, 'csv, tsv: a decimal comma (and `;` between cells)')
            [CompletionResult]::new('--bom', '--bom', [CompletionResultType]::ParameterName, 'csv, tsv: begin with a byte order mark')
            [CompletionResult]::new('--no-header', '--no-header', [CompletionResultType]::ParameterName, 'csv, tsv: no line of names')
            [CompletionResult]::new('--excel', '--excel', [CompletionResultType]::ParameterName, 'csv, tsv: for a double click in Excel: byte order mark, CRLF, no cell runs as a formula')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Use made-up batches from a service that runs for this command only; needs no set-up')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;sync' {
            [CompletionResult]::new('--start', '--start', [CompletionResultType]::ParameterName, 'Where a new archive begins, or an old one is to reach back to; with `--changes`, from when on')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'Where a new archive begins, or an old one is to reach back to; with `--changes`, from when on')
            [CompletionResult]::new('--lookback', '--lookback', [CompletionResultType]::ParameterName, 'How much of what is complete is looked at again, for batches that came late or changed')
            [CompletionResult]::new('--wait', '--wait', [CompletionResultType]::ParameterName, 'How long to wait for another run that holds the archive [default: not at all]')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Format of the list [default: table on a terminal, else ndjson; of `--status`: table]')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'Format of the list [default: table on a terminal, else ndjson; of `--status`: table]')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'Address of the service, such as `https://scan.example.com/api`')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret; others may see it here: rather use a file or the variable')
            [CompletionResult]::new('--client-secret-file', '--client-secret-file', [CompletionResultType]::ParameterName, 'File with the client secret; `-` for standard input')
            [CompletionResult]::new('--api', '--api', [CompletionResultType]::ParameterName, 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Requests at a time, at most [default: 4]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Times that a request is tried again [default: 5]')
            [CompletionResult]::new('--retry-wait', '--retry-wait', [CompletionResultType]::ParameterName, 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Longest time without a byte arriving [default: 60s]')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'Certificate (PEM) to trust beside the system''s')
            [CompletionResult]::new('--allow-http', '--allow-http', [CompletionResultType]::ParameterName, 'Allow plain http to another machine')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of the config file [default: its `default_profile`, else `default`]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: see `trayscan config path`]')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'When to show progress; `auto`: when standard error is a terminal')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('--full', '--full', [CompletionResultType]::ParameterName, 'Fetch all again, and find out which batches vanished from the service')
            [CompletionResult]::new('--lenient', '--lenient', [CompletionResultType]::ParameterName, 'Carry on past batches that break the interface: as received, their columns null')
            [CompletionResult]::new('--status', '--status', [CompletionResultType]::ParameterName, 'Show what is complete, day by day, and the last runs; asks no service')
            [CompletionResult]::new('--changes', '--changes', [CompletionResultType]::ParameterName, 'List what was added, what changed and what vanished; asks no service')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Use made-up batches from a service that runs for this command only; needs no set-up')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;verify' {
            [CompletionResult]::new('--manifest', '--manifest', [CompletionResultType]::ParameterName, 'Compare with the receipt that `export --manifest` wrote')
            [CompletionResult]::new('--against', '--against', [CompletionResultType]::ParameterName, 'Compare with another file, in any format that can be verified; `-` for standard input')
            [CompletionResult]::new('--archive', '--archive', [CompletionResultType]::ParameterName, 'Compare with an archive that `trayscan sync` keeps, in place of the service')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'How the result is shown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the result is shown')
            [CompletionResult]::new('--start', '--start', [CompletionResultType]::ParameterName, 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)')
            [CompletionResult]::new('--since', '--since', [CompletionResultType]::ParameterName, 'First date, such as 2026-05-01, 2026-05, today or 7d (for 7 days ago)')
            [CompletionResult]::new('--end', '--end', [CompletionResultType]::ParameterName, 'Last date, in the same forms; a day, month or year counts whole')
            [CompletionResult]::new('--until', '--until', [CompletionResultType]::ParameterName, 'Last date, in the same forms; a day, month or year counts whole')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'Address of the service, such as `https://scan.example.com/api`')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret; others may see it here: rather use a file or the variable')
            [CompletionResult]::new('--client-secret-file', '--client-secret-file', [CompletionResultType]::ParameterName, 'File with the client secret; `-` for standard input')
            [CompletionResult]::new('--api', '--api', [CompletionResultType]::ParameterName, 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Requests at a time, at most [default: 4]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Times that a request is tried again [default: 5]')
            [CompletionResult]::new('--retry-wait', '--retry-wait', [CompletionResultType]::ParameterName, 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Longest time without a byte arriving [default: 60s]')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'Certificate (PEM) to trust beside the system''s')
            [CompletionResult]::new('--allow-http', '--allow-http', [CompletionResultType]::ParameterName, 'Allow plain http to another machine')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of the config file [default: its `default_profile`, else `default`]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: see `trayscan config path`]')
            [CompletionResult]::new('--progress', '--progress', [CompletionResultType]::ParameterName, 'When to show progress; `auto`: when standard error is a terminal')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('--service', '--service', [CompletionResultType]::ParameterName, 'Compare with what the service holds now: what the manifest asked for, or the dates given')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Use made-up batches from a service that runs for this command only; needs no set-up')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;check' {
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'Address of the service, such as `https://scan.example.com/api`')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret; others may see it here: rather use a file or the variable')
            [CompletionResult]::new('--client-secret-file', '--client-secret-file', [CompletionResultType]::ParameterName, 'File with the client secret; `-` for standard input')
            [CompletionResult]::new('--api', '--api', [CompletionResultType]::ParameterName, 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Requests at a time, at most [default: 4]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Times that a request is tried again [default: 5]')
            [CompletionResult]::new('--retry-wait', '--retry-wait', [CompletionResultType]::ParameterName, 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Longest time without a byte arriving [default: 60s]')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'Certificate (PEM) to trust beside the system''s')
            [CompletionResult]::new('--allow-http', '--allow-http', [CompletionResultType]::ParameterName, 'Allow plain http to another machine')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of the config file [default: its `default_profile`, else `default`]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: see `trayscan config path`]')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'How the findings are shown')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the findings are shown')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Use made-up batches from a service that runs for this command only; needs no set-up')
            [CompletionResult]::new('--probe', '--probe', [CompletionResultType]::ParameterName, 'Find out what the interface leaves open, with a few dozen requests that only read')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;serve' {
            [CompletionResult]::new('--listen', '--listen', [CompletionResultType]::ParameterName, 'Address and port to listen on; port 0 picks a free one')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'How the address and the credentials are printed: lines for people, or one JSON line')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'How the address and the credentials are printed: lines for people, or one JSON line')
            [CompletionResult]::new('--archive', '--archive', [CompletionResultType]::ParameterName, 'Serve the batches of an archive that `trayscan sync` keeps, and follow it as it changes')
            [CompletionResult]::new('--batches', '--batches', [CompletionResultType]::ParameterName, 'How many batches to make up')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Seed of the made-up batches and of the faults')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier to accept (variables are not read: they are for the real service)')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret to accept [default: a new random one]')
            [CompletionResult]::new('--token-ttl', '--token-ttl', [CompletionResultType]::ParameterName, 'How long a token lives')
            [CompletionResult]::new('--page-size', '--page-size', [CompletionResultType]::ParameterName, 'Batches in a page of version 2')
            [CompletionResult]::new('--v1-limit', '--v1-limit', [CompletionResultType]::ParameterName, 'The most that version 1 answers; more are cut off, or refused with `--fault v1-refuse` [default: no limit, or 1000 with a fault of version 1]')
            [CompletionResult]::new('--fault', '--fault', [CompletionResultType]::ParameterName, 'Misbehave on purpose; repeatable (`--help` lists the faults)')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;config' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print where the config file is looked for')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print the settings that hold and where each comes from; secrets are masked')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Begin a config file, with every key explained')
            break
        }
        'trayscan;config;path' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: the platform''s place for it]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;config;show' {
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'Address of the service, such as `https://scan.example.com/api`')
            [CompletionResult]::new('--client-id', '--client-id', [CompletionResultType]::ParameterName, 'The client identifier')
            [CompletionResult]::new('--client-secret', '--client-secret', [CompletionResultType]::ParameterName, 'The client secret; others may see it here: rather use a file or the variable')
            [CompletionResult]::new('--client-secret-file', '--client-secret-file', [CompletionResultType]::ParameterName, 'File with the client secret; `-` for standard input')
            [CompletionResult]::new('--api', '--api', [CompletionResultType]::ParameterName, 'Version of the interface [default: auto, which is v2, and v1 only where there is no v2]')
            [CompletionResult]::new('--parallel', '--parallel', [CompletionResultType]::ParameterName, 'Requests at a time, at most [default: 4]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'Times that a request is tried again [default: 5]')
            [CompletionResult]::new('--retry-wait', '--retry-wait', [CompletionResultType]::ParameterName, 'Wait after a 503, give or take a quarter; others begin with a quarter of it [default: 4s]')
            [CompletionResult]::new('--timeout', '--timeout', [CompletionResultType]::ParameterName, 'Longest time without a byte arriving [default: 60s]')
            [CompletionResult]::new('--ca-cert', '--ca-cert', [CompletionResultType]::ParameterName, 'Certificate (PEM) to trust beside the system''s')
            [CompletionResult]::new('--allow-http', '--allow-http', [CompletionResultType]::ParameterName, 'Allow plain http to another machine')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Profile of the config file [default: its `default_profile`, else `default`]')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: see `trayscan config path`]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('--sandbox', '--sandbox', [CompletionResultType]::ParameterName, 'Use made-up batches from a service that runs for this command only; needs no set-up')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;config;init' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Config file [default: the platform''s place for it]')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;completions' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'trayscan;man' {
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colour [`NO_COLOR` turns `auto` off]')
            [CompletionResult]::new('--error-format', '--error-format', [CompletionResultType]::ParameterName, 'How an error is shown: lines for people, or one JSON object as the last line')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Show errors only')
            [CompletionResult]::new('-v', '-v', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('--verbose', '--verbose', [CompletionResultType]::ParameterName, 'Tell more; twice: every request')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
