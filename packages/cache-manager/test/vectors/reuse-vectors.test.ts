import { BufferwiseError, type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { readVectors } from '@bufferwise-internal/test-kit';
import { describe, expect, it } from 'vitest';
import { HostPageDevice, type KvCache, KvCacheManager } from '../../src/index.ts';
import { dropPage } from '../../src/testing/index.ts';
import type { Operation } from './operation.ts';

/** Runs one operation and says what it answered, in the words of the vectors. */
async function run(manager: KvCacheManager, requests: Map<string, KvCache>, operation: Operation): Promise<unknown> {
  const scope = operation.scope ?? undefined;
  const request = requests.get(operation.name) as KvCache;
  switch (operation.op) {
    case 'create': {
      const created = manager.createKvCache({ tokens: operation.tokens, scope });
      requests.set(operation.name, created);
      const reuseStatus = created.reuseStatus.map(({ groupId, ...rest }) => ({ group: groupId, ...rest }));
      return { numCommittedTokens: created.numCommittedTokens, reuseStatus };
    }
    case 'resume': {
      const { optionalReuseGroups, rebuiltGroups } = operation;
      return answer(() => request.resume({ optionalReuseGroups, rebuiltGroups }));
    }
    case 'resize':
      return answer(() => request.resize(operation.capacity, operation.historyLength));
    case 'commit':
      return request.commit(operation.tokens, { end: operation.end, snapshot: operation.snapshot });
    case 'suspend':
      return request.suspend();
    case 'stopCommitting':
      return request.stopCommitting();
    case 'close':
      return request.close();
    case 'probe':
      return { value: manager.probeReuse(operation.tokens, scope) };
    case 'drop':
      return { value: dropPage(manager, { tokens: operation.tokens, block: operation.block, groupId: operation.group, scope }) };
  }
}

async function answer(call: () => boolean | Promise<boolean>): Promise<unknown> {
  try {
    return { value: await call() };
  } catch (error) {
    if (BufferwiseError.isInstance(error)) return { error: error.name };
    throw error;
  }
}

for (const file of ['reuse', 'reuse-scratch'] as const) {
  describe(`the published cases of ${file}`, () => {
    const cases = readVectors<{ config: CacheConfigInput; ops: Operation[] }>(file);
    it.each(cases.map((vector, index) => ({ index, ...vector })))(
      'case $index answers every operation as published',
      async ({ config, ops }) => {
        const device = new HostPageDevice();
        const manager = new KvCacheManager({ config: defineCacheConfig(config), device, debugChecks: true });
        const requests = new Map<string, KvCache>();
        for (const [step, operation] of ops.entries()) {
          const answered = await run(manager, requests, operation);
          if (operation.expect !== undefined)
            expect(answered, `step ${step}: ${operation.op} ${operation.name ?? ''}`).toEqual(operation.expect);
        }
        await manager.close({ force: true });
      },
    );
  });
}
