;;; story.el --- an agent's story in Emacs with eglot -*- lexical-binding: t -*-

;; emacs --batch -q -l story.el, with STORY (JSON) in the environment:
;;   {"command": [...], "file": ..., "unsaved": text put at the start of the buffer and not saved,
;;    "prompt": ..., "isolation": "worktree" or "none", "label": the answer to questions, "result": where to write}
;; Writes {"questions", "agent", "review", "apply", "buffer", "modified", "disk", "messages"} as JSON to the result file.

;;; Code:

(require 'package)
(package-initialize)
(require 'eglot)
(require 'json)

(defvar story (json-parse-string (getenv "STORY") :object-type 'plist :array-type 'list :null-object nil))
(defvar story-questions nil)

(setq eglot-server-programs `((python-mode . ,(plist-get story :command)))
      eglot-confirm-server-initiated-edits nil
      eglot-sync-connect 30
      eglot-connect-timeout 30
      create-lockfiles nil
      make-backup-files nil
      auto-save-default nil)

(advice-add 'completing-read :override
            (lambda (prompt collection &rest _)
              (push (list :question prompt
                          :choices (vconcat (mapcar (lambda (each) (if (consp each) (car each) each)) collection)))
                    story-questions)
              (plist-get story :label)))

(defun story-call (server name &optional arguments)
  "The result of the command agent.NAME of SERVER with ARGUMENTS, a plist, or with none at all."
  (jsonrpc-request server :workspace/executeCommand
                   (list :command (concat "agent." name) :arguments (if arguments (vector arguments) []))
                   :timeout 60))

(defun story-tell ()
  "What eglot does when the user is idle, which never happens in batch."
  (when (buffer-live-p (get-file-buffer (plist-get story :file)))
    (with-current-buffer (get-file-buffer (plist-get story :file))
      (when (eglot-managed-p)
        (eglot--signal-textDocument/didChange)))))

(defun story-run ()
  (find-file (plist-get story :file))
  (python-mode)
  (let ((server (apply #'eglot--connect (eglot--guess-contact))))
    (eglot--maybe-activate-editing-mode)
    (goto-char (point-min))
    (insert (plist-get story :unsaved))
    (story-tell)
    (run-with-timer 0.1 0.1 #'story-tell)
    (let* ((isolated (equal (plist-get story :isolation) "worktree"))
           (spawned (story-call server "spawn" (list :prompt (plist-get story :prompt)
                                                     :isolation (plist-get story :isolation))))
           (id (plist-get (plist-get spawned :agent) :id))
           (agent (plist-get (story-call server "wait" (list :agentId id)) :agent))
           (review (and isolated (story-call server "review")))
           (apply (and isolated (story-call server "apply")))
           (result (list :questions (vconcat (reverse story-questions))
                         :agent agent
                         :review (or review :null)
                         :apply (or apply :null)
                         :buffer (buffer-substring-no-properties (point-min) (point-max))
                         :modified (if (buffer-modified-p) t :false)
                         :disk (with-temp-buffer
                                 (insert-file-contents (plist-get story :file))
                                 (buffer-string)))))
      (let ((json-false :false) (json-null :null))
        (with-temp-file (plist-get story :result)
          (set-buffer-file-coding-system 'utf-8-unix)
          (insert (json-encode result))))
      (set-buffer-modified-p nil)
      (eglot-shutdown server))))

(condition-case err
    (story-run)
  (error (message "FAILED %S" err)
         (kill-emacs 1)))

;;; story.el ends here
