import { describePageStore } from '@bufferwise/adapter-kit/conformance/page-store';
import { destroy, freshDirectory, openTampered, reopenTampered, tamper } from './stores.ts';

describePageStore('origin private file system', {
  create: ({ quotaBytes } = {}) => openTampered({ directory: freshDirectory(), quotaBytes }),
  destroy,
  tamper,
  reopen: reopenTampered,
});
