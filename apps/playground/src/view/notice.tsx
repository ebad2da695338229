import { dismissNotice } from '../state/actions.ts';
import { notice } from '../state/store.ts';

/** Tells once what was asked for and did not happen. */
export function Notice() {
  const { value: text } = notice;
  return (
    <div class="notice" role="status" hidden={text === ''}>
      {text !== '' && (
        <>
          <span>{text}</span>
          <button type="button" class="button small" onClick={dismissNotice}>
            Dismiss
          </button>
        </>
      )}
    </div>
  );
}
