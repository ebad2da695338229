#!/usr/bin/env node
/** `node scripts/create-adapter.mjs NAME --kind KIND [--into FOLDER]`: a new plugin that builds and passes its suite at once. */
import { parseArgs } from 'node:util';
import { createAdapter, KINDS } from './create-adapter/create-adapter.mjs';

const usage = `usage: create-adapter NAME --kind ${KINDS.join(' | ')} [--into FOLDER]\n`;

try {
  const { values, positionals } = parseArgs({
    options: { kind: { type: 'string' }, into: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  });
  if (values.help) {
    process.stdout.write(usage);
    process.exit();
  }
  const { folder, files } = createAdapter({ name: positionals[0], kind: values.kind, into: values.into });
  process.stdout.write(`${files.map((file) => `  ${folder}/${file}`).join('\n')}\n\n`);
  process.stdout.write(
    'Next: install (`npx --yes pnpm@12.4.2 install`), then docs/write-an-adapter.md. Its tests pass from the start; keep them passing while you replace what is inside.\n',
  );
} catch (error) {
  process.stderr.write(`${error.message}\n${usage}`);
  process.exitCode = 1;
}
