import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { destroy, freshDirectory, openTampered, reopenTampered, tamper } from './stores.ts';

for (const flush of ['never', 'always'] as const) {
  describePageStore(`origin private file system, flush ${flush},`, {
    create: ({ quotaBytes } = {}) => openTampered({ directory: freshDirectory(), quotaBytes, flush }),
    destroy,
    tamper,
    reopen: reopenTampered,
  });
}
