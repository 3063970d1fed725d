/** A dialog of the browser: it keeps the focus inside, Escape closes it, and the focus returns. */

import { type ReactNode, useEffect, useId, useRef } from "react";
import { Icon } from "./icons";

interface Props {
  title: string;
  children: ReactNode;
  onClose: () => void;
  /** `sheet`: at the side on wide screens. */
  shape?: "centre" | "sheet";
}

export function Dialog({ title, children, onClose, shape = "centre" }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    // The browser would choose the button that closes it.
    element?.querySelector<HTMLElement>(".dialog-body :is(input, textarea, select)")?.focus();
    return () => {
      element?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className={`dialog ${shape}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header className="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" className="quiet" onClick={onClose} aria-label="Close">
          <Icon name="close" />
        </button>
      </header>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
