import { describe } from 'vitest';
import { describeKeys, describeTierStore } from '../../../test/support/tier-store-suite.ts';
import { OpfsTierStore } from './opfs-tier-store.ts';

describe('a store in the origin private file system of this browser', () => {
  describeTierStore(() => OpfsTierStore.open());
  describeKeys(() => OpfsTierStore.open());
});
