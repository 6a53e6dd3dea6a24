import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useId, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useQuestion } from '../api/questions.ts';
import { FormPlace, mayClose } from './use-leave-question.ts';

/** @param isLocked it shows a secret that would be lost: only a button of its own closes it */
type DialogProps = ModalProps & { isLocked?: boolean };

/**
 * A dialog with a form. A click outside does not close it, so nothing typed is lost, and Escape closes only the question that
 * lies over it.
 */
export function Dialog({ children, isLocked = false, onClose, ...props }: DialogProps) {
  const { t } = useTranslation();
  const isCovered = useIsCovered();
  const place = useId();
  const close = async (): Promise<void> => {
    const words = { title: t('common.leaveTitle'), text: t('common.leaveText'), action: t('common.leave') };
    if (await mayClose(place, words)) onClose();
  };
  return (
    <Modal
      size="lg"
      closeOnClickOutside={false}
      closeOnEscape={!isCovered && !isLocked}
      withCloseButton={!isLocked}
      closeButtonProps={{ 'aria-label': t('common.close') }}
      {...props}
      onClose={() => void close()}
    >
      <FormPlace value={place}>{children}</FormPlace>
    </Modal>
  );
}

/** Whether a question lies over the page. It still counts for the key press that closes it, which reaches every dialog. */
function useIsCovered(): boolean {
  const isAsked = useQuestion() !== null;
  const [isCovered, setCovered] = useState(isAsked);
  useEffect(() => {
    if (isAsked) return setCovered(true);
    const timer = setTimeout(() => setCovered(false));
    return () => clearTimeout(timer);
  }, [isAsked]);
  return isAsked || isCovered;
}
