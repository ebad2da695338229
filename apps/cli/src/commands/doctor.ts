import { freemem, totalmem } from 'node:os';
import { defineCommand } from '../command/command.ts';
import { checkCacheFolder } from '../doctor/check-cache-folder.ts';
import { checkGpu } from '../doctor/check-gpu.ts';
import { checkMemory } from '../doctor/check-memory.ts';
import { checkNode } from '../doctor/check-node.ts';
import { checkPackages } from '../doctor/check-packages.ts';
import { checkPrograms } from '../doctor/check-programs.ts';
import { findingsText } from '../doctor/report.ts';
import { repositoryOf } from '../input/repository.ts';

/** Says what will work on this machine, and how to mend the rest. Exit code 1 when nothing on a GPU will. */
export const doctor = defineCommand({
  name: 'doctor',
  summary: 'What will work on this machine, and how to mend the rest',
  args: {
    json: { type: 'boolean', description: 'Print one JSON object', default: false },
  },
  examples: [
    { what: 'Look at this machine; the exit code is 0 when models will run', line: 'bufferwise doctor' },
    { what: 'What the device can bind, for scripts', line: 'bufferwise doctor --json | jq .adapter.limits' },
  ],
  async run(given, terminal) {
    const gpu = await checkGpu();
    const findings = [
      checkNode(process.versions.node),
      ...gpu.findings,
      checkMemory(freemem(), totalmem()),
      await checkCacheFolder(),
      ...checkPackages(),
      // Tests are only where the repository is.
      ...(repositoryOf() === undefined ? [] : await checkPrograms(process.env.PATH ?? '')),
    ];
    const ready = findings.every(({ state }) => state !== 'fail');
    const { platform, arch } = process;
    const answer = { ready, platform, arch, adapter: gpu.adapter, findings };
    terminal.print(given.json ? `${JSON.stringify(answer)}\n` : findingsText(findings, terminal));
    return ready ? 0 : 1;
  },
});
