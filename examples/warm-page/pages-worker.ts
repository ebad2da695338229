// The whole worker that keeps the pages: browsers give quick access to files in workers only.
import '@bufferwise/adapter-connectors/opfs-worker';
