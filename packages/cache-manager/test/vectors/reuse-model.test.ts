import { type CacheConfigInput, defineCacheConfig } from '@bufferwise/core-policy';
import { ModelRefusal, type RequestModel, readVectors } from '@bufferwise-internal/test-kit';
import { describe, expect, test } from 'vitest';
import { oracleOf, scopeName } from '../support/oracle.ts';
import { groupRoles } from '../support/stage.ts';
import type { Operation } from './operation.ts';

for (const file of ['reuse', 'reuse-scratch'] as const) {
  describe(`the oracle of the property tests agrees with the published cases of ${file}`, () => {
    const cases = readVectors<{ config: CacheConfigInput; ops: Operation[] }>(file);
    test.each(cases.map((vector, index) => ({ index, ...vector })))('case $index', ({ config, ops }) => {
      const checked = defineCacheConfig(config);
      const oracle = oracleOf(checked, groupRoles(checked));
      const requests = new Map<string, RequestModel>();
      for (const [step, operation] of ops.entries()) {
        const { op, name, tokens, optionalReuseGroups, rebuiltGroups, capacity, historyLength, block, group } = operation;
        const request = requests.get(name) as RequestModel;
        const answers: Record<Operation['op'], () => unknown> = {
          create: () => {
            const created = oracle.create(tokens, scopeName(operation.scope));
            requests.set(name, created);
            const { groups } = oracle.config;
            const reuseStatus = created.status.map((status, id) => ({ group: id, policy: groups[id].policy, ...status }));
            return { numCommittedTokens: created.committed, reuseStatus };
          },
          resume: () => answer(() => request.resume(optionalReuseGroups, rebuiltGroups)),
          resize: () => answer(() => request.resize(capacity, historyLength)),
          commit: () => request.commit(tokens, operation),
          suspend: () => request.suspend(),
          stopCommitting: () => request.stopCommitting(),
          close: () => request.close(),
          probe: () => ({ value: oracle.probe(tokens, scopeName(operation.scope)) }),
          drop: () => ({ value: oracle.drop(tokens, block, group, scopeName(operation.scope)) }),
        };
        const answered = answers[op]();
        if (operation.expect !== undefined) expect(answered, `step ${step}: ${op} ${name ?? ''}`).toEqual(operation.expect);
      }
    });
  });
}

function answer(call: () => void): unknown {
  try {
    call();
    return { value: true };
  } catch (error) {
    if (error instanceof ModelRefusal) return { error: error.kind };
    throw error;
  }
}
